package world

import (
	"reflect"
	"strconv"
	"strings"
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

// Rows reads the rows of a table.
func Rows(table string) (rows []Row) {
	for _, cells := range tables.Rows(table) {
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
