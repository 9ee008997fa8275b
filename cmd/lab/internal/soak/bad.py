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

def forward(number, frame):
    if number == signal.SIGUSR1:
        leak()
    os.kill(child, number)

child = os.posix_spawnp(command[0], command, os.environ)
for name in "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH":
    signal.signal(getattr(signal, name), forward)
if fault == "wakeups":
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
while True:
    pid, status = os.waitpid(child if fault == "zombies" else -1, 0)
    if pid == child:
        os._exit(os.waitstatus_to_exitcode(status))
