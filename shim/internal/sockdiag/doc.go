// Package sockdiag lists TCP sockets over NETLINK_SOCK_DIAG, and reads the kernel's
// events of destroyed sockets.
//
// No privilege is needed within the own network namespace. Functions that parse bytes
// make no system call, and check each length in a message. Listing allocates no memory
// per socket: a visitor's socket is overwritten when the visitor returns.
//
// Errors wrap the kernel's. Without sock_diag, socket(2) returns EPROTONOSUPPORT
// (gVisor), or the first dump returns ENOENT (a kernel without inet_diag, or with
// locked modules); EACCES and EPERM come from SELinux and seccomp.
//
// See sock_diag(7), netlink(7), include/uapi/linux/inet_diag.h.
package sockdiag
