// Package sockdiag asks the kernel which TCP sockets there are, over
// NETLINK_SOCK_DIAG, and hears from it which ones are gone.
//
// It works without any privilege, in one's own network namespace. What reads
// and writes bytes makes no system call: a message is never trusted to be as
// long as it says. Nothing is allocated for a socket: what a visitor is given
// is overwritten when it returns.
//
// Errors wrap the kernel's. Where there is no such thing to ask, socket(2) says
// EPROTONOSUPPORT (gVisor), or the first question gets ENOENT (a kernel without
// inet_diag, or whose modules are locked); EACCES and EPERM are SELinux's and
// seccomp's.
//
// See sock_diag(7), netlink(7), include/uapi/linux/inet_diag.h.
package sockdiag
