package proc

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// maxTyped is the size of a terminal's buffer; see N_TTY_BUF_SIZE in the kernel's
// drivers/tty/n_tty.c.
const maxTyped = 4096

// Keyboard is standard input, if that is a terminal, read key by key and without echo.
// Ctrl-C and Ctrl-Z send signals as ever. The zero value is off.
type Keyboard struct {
	before *unix.Termios // the settings to restore; nil: off
}

// On changes the terminal's settings, unless we are in the background: the terminal then is
// the shell's. See termios(3).
func (k *Keyboard) On() {
	now, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if k.before != nil || err != nil || !foreground() {
		return
	}
	byKey := *now
	byKey.Lflag &^= unix.ICANON | unix.ECHO
	byKey.Cc[unix.VMIN] = 0 // a read returns at once
	byKey.Cc[unix.VTIME] = 0
	if unix.IoctlSetTermios(0, unix.TCSETS, &byKey) == nil {
		k.before = now
	}
}

// Off restores the terminal's settings. In the background they are the shell's by now.
func (k *Keyboard) Off() {
	if k.before != nil && foreground() {
		blocked(sig.TTOU, func() { unix.IoctlSetTermios(0, unix.TCSETS, k.before) })
	}
	k.before = nil
}

// Pressed reports whether a key of keys was pressed since the last call.
func (k *Keyboard) Pressed(keys ...byte) bool {
	if k.before == nil || !foreground() {
		return false
	}
	typed := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	if n, _ := unix.Poll(typed, 0); n <= 0 {
		return false
	}
	var buf [maxTyped]byte
	n, _ := unix.Read(0, buf[:])
	return slices.ContainsFunc(keys, func(key byte) bool { return bytes.IndexByte(buf[:max(n, 0)], key) >= 0 })
}
