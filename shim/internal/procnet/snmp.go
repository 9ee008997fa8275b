package procnet

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// ParsePassiveOpens finds tcpPassiveOpens of RFC 4022 in net/snmp, where a line of
// names goes before each line of numbers.
func ParsePassiveOpens(r io.Reader) (uint64, error) {
	l := newLines(r)
	column := -1
	for {
		line, err := l.next()
		if err == io.EOF {
			return 0, errors.New("PassiveOpens is missing")
		}
		if err != nil {
			return 0, err
		}
		fields := bytes.Fields(line)
		switch {
		case len(fields) == 0 || string(fields[0]) != "Tcp:":
		case column < 0:
			column = position(fields, "PassiveOpens")
		case column < len(fields):
			return strconv.ParseUint(string(fields[column]), 10, 64)
		}
	}
}

// position is -1 where there is no such field.
func position(fields [][]byte, name string) int {
	for i, field := range fields {
		if string(field) == name {
			return i
		}
	}
	return -1
}
