// Package testutil has helpers for the tests of several packages. Package netns runs a
// package's tests in a network namespace of their own, and package script reads the
// golden scripts.
package testutil

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is the longest time that a handshake may take. A test waits that long only if
// it fails.
const Patience = time.Minute

// module is the first line of the go.mod in the repository's root.
const module = "module github.com/lameduck-init/lameduck\n"

// Root returns the absolute path of the repository: the nearest directory, from the
// working directory upwards, whose go.mod is the product's. Outside of the repository,
// where helper processes may run, Root returns "".
func Root() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		text, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if strings.HasPrefix(string(text), module) {
			return dir
		}
	}
	return ""
}

// Path returns the absolute path of a file, given relative to the repository.
func Path(name string) string { return filepath.Join(Root(), name) }

// Must returns value, and panics on an error.
func Must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// LowestFree returns the lowest descriptor that is free.
func LowestFree() int {
	fd := Must(unix.Dup(0))
	unix.Close(fd)
	return fd
}

// FullListener returns the address of a listener that accepts nobody, and whose queue is full.
func FullListener(t *testing.T) (address string) {
	l := Must(net.Listen("tcp", "127.0.0.1:0")).(*net.TCPListener)
	t.Cleanup(func() { l.Close() })
	Must(l.SyscallConn()).Control(func(fd uintptr) { unix.Listen(int(fd), 0) })
	for range 3 { // the first is in the queue
		conn, err := net.DialTimeout("tcp", l.Addr().String(), 50*time.Millisecond)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
		}
	}
	return l.Addr().String()
}

// Eventually polls until ok returns true, for conditions without another sign, and fails
// the test after Patience.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v, still not: %s", Patience, what)
		}
	}
}

// WriteFile makes path a file with this text.
func WriteFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
