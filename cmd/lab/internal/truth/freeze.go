package truth

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// freeze stops the processes of the server whose command line contains words, with STOP.
// lameduck's command line, which contains the server's, is passed over.
func (t *trial) freeze(words string) {
	frozen := 0
	for _, path := range must(filepath.Glob("/proc/[0-9]*/cmdline")) {
		text, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		line := strings.ReplaceAll(string(text), "\x00", " ")
		if pid > 1 && pid != t.cmd.Process.Pid && strings.Contains(line, words) {
			t.check(syscall.Kill(pid, syscall.SIGSTOP))
			frozen++
		}
	}
	if frozen == 0 {
		t.check(fmt.Errorf("no process of the server is called %q", words))
	}
}

// must returns the value of a call whose error would be a mistake in this program.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
