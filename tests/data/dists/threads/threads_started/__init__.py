"""Starts a thread at import and never ends it."""

import threading

threading.Thread(target=threading.Event().wait, name="left behind").start()
