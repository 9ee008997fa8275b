package rollout

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// progress is a bar on a terminal, and elsewhere a line every 30 s.
type progress struct {
	out      *os.File
	terminal bool
	total    int
	began    time.Time

	mu   sync.Mutex // every worker steps
	done int
	said time.Time
}

func newProgress(out *os.File, total int) *progress {
	p := &progress{out: out, terminal: onTerminal(out), total: total, began: time.Now(), said: time.Now()}
	p.show()
	return p
}

func onTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.terminal || time.Since(p.said) > 30*time.Second {
		p.show()
	}
}

func (p *progress) show() {
	p.said = time.Now()
	const width = 40
	full := width * p.done / p.total
	left := ""
	if p.done > 0 {
		rest := time.Since(p.began) / time.Duration(p.done) * time.Duration(p.total-p.done)
		left = fmt.Sprintf(", %v left", rest.Round(time.Second))
	}
	text := fmt.Sprintf("[%s%s] %d of %d rollouts%s", strings.Repeat("#", full), strings.Repeat(".", width-full), p.done, p.total, left)
	if p.terminal {
		fmt.Fprintf(p.out, "\r%s\x1b[K", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

func (p *progress) close() {
	p.show()
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}
