package soak

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// lines are the lines of a program.
type lines struct {
	ended chan struct{}

	mu   sync.Mutex // the reader and the life share the fields below
	said []string
	seen int // the lines up to the last line found by wait
}

func collect(from io.Reader) *lines {
	l := &lines{ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		for in := bufio.NewScanner(from); in.Scan(); {
			l.mu.Lock()
			l.said = append(l.said, in.Text())
			if l.seen > 1000 { // a long life writes much
				l.said, l.seen = l.said[l.seen:], 0
			}
			l.mu.Unlock()
		}
	}()
	return l
}

// wait waits for a line that contains text, after the lines found before.
func (l *lines) wait(text string) (string, error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		for l.seen < len(l.said) {
			line := l.said[l.seen]
			l.seen++
			if strings.Contains(line, text) {
				l.mu.Unlock()
				return line, nil
			}
		}
		l.mu.Unlock()
		select {
		case <-l.ended:
			return "", fmt.Errorf("the end of the output came before %q", text)
		default:
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("no %q in the output", text)
		}
	}
}

// tail returns the last lines.
func (l *lines) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.said[max(0, len(l.said)-20):], "\n")
}
