package procnet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// longest is the maximum length of a line in bytes; the kernel's lines have a few hundred.
const longest = 16 << 10

// The errors of a file that is not a table, or not whole.
var (
	errHeader = errors.New("the table's header is missing")
	errCut    = errors.New("the last line is cut short")
	errLong   = errors.New("a line is too long")
)

// lines reads a file line by line, without an allocation for each.
type lines struct {
	from   *bufio.Reader
	number int // of the last line read
}

func newLines(r io.Reader) *lines {
	return &lines{from: bufio.NewReaderSize(r, longest)}
}

// next returns a line without its newline, valid until the next call, and io.EOF after the
// last line.
func (l *lines) next() ([]byte, error) {
	line, err := l.from.ReadSlice('\n')
	switch {
	case err == nil:
		l.number++
		return line[:len(line)-1], nil
	case err == bufio.ErrBufferFull:
		return nil, errLong
	case err == io.EOF && len(line) > 0:
		return nil, errCut // a number's end may be missing
	}
	return nil, err
}

// header reads the first line, and checks that the line begins with the word.
func (l *lines) header(word string) error {
	line, err := l.next()
	if err != nil && err != io.EOF {
		return err
	}
	if first, _ := cut(line); string(first) != word {
		return errHeader
	}
	return nil
}

// cut splits off the first field; blanks separate fields.
func cut(line []byte) (field, rest []byte) {
	start := 0
	for start < len(line) && line[start] == ' ' {
		start++
	}
	end := start
	for end < len(line) && line[end] != ' ' {
		end++
	}
	return line[start:end], line[end:]
}

// decimal reads a number of up to 32 bits.
func decimal(field []byte) (uint32, bool) {
	n, err := strconv.ParseUint(string(field), 10, 32)
	return uint32(n), err == nil
}

// hex reads a number of exactly the given number of hexadecimal digits, at most eight.
func hex(field []byte, digits int) (uint32, bool) {
	n, err := strconv.ParseUint(string(field), 16, 32)
	return uint32(n), err == nil && len(field) == digits
}

func notSocket(number int, line []byte) error {
	return fmt.Errorf("invalid socket on line %d: %q", number, line[:min(len(line), 160)])
}
