// Package box starts programs for the tests of e2e: lameduck as PID 1 of new namespaces,
// with or without faults, other inits, servers, clients and terminals. Helper programs are
// the test binary itself, as "helper NAME ARG...": see Main. What a test does with a program, and waits
// for, is a session wherever no more is measured than the order: see Box.Play and Row.Play.
package box
