#!/usr/bin/env python3
# An init with one fault, "FAULT COMMAND [ARG...]", for a test that the soak finds faults: each
# USR1 leaks a resource, or orphans are not reaped, or a timer wakes the init all the time.
import os, signal, sys, threading

fault, command = sys.argv[1], sys.argv[2:]
leaked = []

def leak():
    if fault == "descriptors":
        os.dup(0)
    elif fault == "threads":
        threading.Thread(target=threading.Event().wait).start()
    elif fault == "memory":
        leaked.append(b"x" * (1 << 20))

def reap():
    pid = -1
    while pid != 0:
        try:
            pid, status = os.waitpid(child if fault == "zombies" else -1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status))

# Signals stay blocked, and wait: a handler in Python may miss the system call that it should end.
names = "TERM", "HUP", "USR1", "USR2", "WINCH", "CHLD", "ALRM"
signals = [signal.Signals["SIG" + name] for name in names]
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
child = os.posix_spawnp(command[0], command, os.environ, setsigmask=[])
if fault == "wakeups":
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
while True:
    number = signal.sigwait(signals)
    if number == signal.SIGUSR1:
        leak()
    if number == signal.SIGCHLD:
        reap()
    elif number != signal.SIGALRM:
        os.kill(child, number)
