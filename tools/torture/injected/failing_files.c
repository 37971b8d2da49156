/* Loaded before the C library, into a server under torture: makes one write of SQLite fail, which Python does not see.

   The file that DEEPWORK_TORTURE_SQLITE names holds "token n errno" while it exists, which is only during the call under test.
   Of all that is done from then on to files whose path has "torture.db" in it, the n-th fails; what it was is added to
   the file <token> beside it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static char last_token[40];
static int count;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Return the error with which this has to fail; 0 if it may pass. */
static int fault(const char *operation, const char *path) {
    const char *control = getenv("DEEPWORK_TORTURE_SQLITE");
    char token[40], report[4096];
    int number, error, fails, file;
    FILE *orders;

    if (!control || !strstr(path, "torture.db") || !(orders = fopen(control, "r")))
        return 0;
    fails = fscanf(orders, "%39s %d %d", token, &number, &error) == 3;
    fclose(orders);
    if (!fails)
        return 0;
    pthread_mutex_lock(&counting);
    if (strcmp(token, last_token)) {
        strcpy(last_token, token);
        count = 0;
    }
    fails = ++count == number;
    pthread_mutex_unlock(&counting);
    if (!fails)
        return 0;
    snprintf(report, sizeof report, "%.*s/%s", (int)(strrchr(control, '/') - control), control, token);
    file = REAL(open64)(report, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dprintf(file, "%s %s", operation, path);
    close(file);
    return error;
}

static int fault_of(const char *operation, int descriptor) {
    char link[40], path[4096];
    ssize_t length;
    int before = errno, error;

    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    error = fault(operation, path);
    errno = error ? error : before;
    return error;
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t place) {
    return fault_of("pwrite", descriptor) ? -1 : REAL(pwrite64)(descriptor, data, size, place);
}

ssize_t write(int descriptor, const void *data, size_t size) {
    return fault_of("write", descriptor) ? -1 : REAL(write)(descriptor, data, size);
}

int fsync(int descriptor) { return fault_of("fsync", descriptor) ? -1 : REAL(fsync)(descriptor); }

int fdatasync(int descriptor) { return fault_of("fdatasync", descriptor) ? -1 : REAL(fdatasync)(descriptor); }

int ftruncate64(int descriptor, off64_t size) {
    return fault_of("ftruncate", descriptor) ? -1 : REAL(ftruncate64)(descriptor, size);
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
        int error = fault("open", path);
        if (error) {
            errno = error;
            return -1;
        }
    }
    return REAL(open64)(path, flags, mode);
}
