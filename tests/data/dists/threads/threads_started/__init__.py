"""Starts a thread at import that nobody ends."""

import threading

threading.Thread(target=threading.Event().wait, name="left behind").start()
