package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// lines is what a program says.
type lines struct {
	ended chan struct{}

	mu   sync.Mutex // the reader and the life share what follows
	said []string
	seen int // what a wait has found, and all before it
}

func collect(from io.Reader) *lines {
	l := &lines{ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		for in := bufio.NewScanner(from); in.Scan(); {
			l.mu.Lock()
			l.said = append(l.said, in.Text())
			if l.seen > 1000 { // a long life says much
				l.said, l.seen = l.said[l.seen:], 0
			}
			l.mu.Unlock()
		}
	}()
	return l
}

// wait waits for a line with text in it, after those found before.
func (l *lines) wait(text string) (string, error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		for l.seen < len(l.said) {
			line := l.said[l.seen]
			if l.seen++; strings.Contains(line, text) {
				l.mu.Unlock()
				return line, nil
			}
		}
		l.mu.Unlock()
		select {
		case <-l.ended:
			return "", fmt.Errorf("it ended before it said %q", text)
		default:
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("it does not say %q", text)
		}
	}
}

// tail is the last of it.
func (l *lines) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.said[max(0, len(l.said)-20):], "\n")
}
