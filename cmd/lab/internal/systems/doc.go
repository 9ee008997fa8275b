// Package systems boots the built lameduck as PID 1 of other kernels and processors,
// under QEMU, and prints a table of the results:
//
//	lab systems [-kernels=DIR,...] [-only=TEXT]
//
// Each row of the table is one boot of one kernel in one variant:
//
//	host                                      guest: an initramfs of a few files
//	+-----------------------------+          +-----------------------------------+
//	| builds lameduck and guest   |  boots   | PID 1: guest, then lameduck       |
//	| sends requests -------------|--------->|   its command: guest serve        |
//	| has HUP and TERM sent       | hostfwd  |                                   |
//	| reads the serial console <--|----------| report as JSON; the panic's       |
//	|                             |          | "Attempted to kill init" code     |
//	+-----------------------------+          +-----------------------------------+
//
// The variants take away sources of lameduck: the tcp_diag module, IPv6, /proc. One
// variant has no hold and must lose requests, or else the load proves nothing.
// Another one runs the unit tests of the packages that decode the kernel's answers,
// with the answers of that kernel.
//
// A verdict depends on facts and not on times, since an emulated processor is slow:
// the exit code, the reason for the end of the hold, the observer, the number of lost
// requests, a request in flight, a signal passed on, and orphans
// reaped.
//
// See the kernel's Documentation/driver-api/early-userspace/buffer-format.rst for the
// initramfs, and Documentation/admin-guide/kernel-parameters.rst for the command line.
package systems
