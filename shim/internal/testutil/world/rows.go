package world

import (
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Condition returns whether a field of a verdict is true; "any": never.
func Condition(name string) func(traffic.Verdict) bool {
	isNamed := func(field string) bool { return strings.EqualFold(field, name) }
	return func(v traffic.Verdict) bool {
		field := reflect.ValueOf(v).FieldByNameFunc(isNamed)
		return field.IsValid() && field.Bool()
	}
}

// Row is a row of a table in testdata: a name, a condition and a time, a world, and what else
// the table has.
type Row struct {
	Name  string
	Cond  func(traffic.Verdict) bool
	At    time.Duration
	World World
	Want  string
}

// ReadRows reads the rows of a table.
func ReadRows(t *testing.T, file string) (rows []Row) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range tables.Rows(string(text)) {
		cond, at, _ := strings.Cut(cells[1], " ")
		r := Row{cells[0], Condition(cond), Never, Parse(cells[2]), cells[len(cells)-1]}
		if at != "never" {
			r.At = Seconds(number(strings.TrimSpace(at)))
		}
		rows = append(rows, r)
	}
	return rows
}

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return n
}
