// Package procfs reads /proc: processes, their descriptors and programs, and the mounts
// and control group of our own process. Package procnet reads the tables of sockets.
//
// An error means "could not look", never "there is none". Lists are good, though perhaps
// not complete, if an error comes with them. A process may end at any time: Gone recognizes
// the error.
//
// See proc(5), proc_pid_stat(5), proc_pid_fd(5), proc_pid_mountinfo(5).
package procfs
