// Package e2e tests the built binary from outside: lameduck runs as PID 1 of new
// namespaces, beside other inits, under real servers and in containers. The package
// has nothing but tests; make build comes first. Helper programs are the test binary
// itself, as "helper NAME ARG...": see TestMain.
package e2e
