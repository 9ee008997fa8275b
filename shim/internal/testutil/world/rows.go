package world

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
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
	Name string
	Goal
	World World
	Want  string
}

// Goal is a condition, and when it is met.
type Goal struct {
	Cond func(traffic.Verdict) bool
	At   time.Duration
}

// Rows reads the rows of a table.
func Rows(table string) []*Row { return tables.Read[Row](table, Parse, goal) }

func goal(text string) Goal {
	cond, at, _ := strings.Cut(text, " ")
	if at == "never" {
		return Goal{Condition(cond), Never}
	}
	return Goal{Condition(cond), seconds(strings.TrimSpace(at))}
}

func number(text string) float64 { return testutil.Must(strconv.ParseFloat(text, 64)) }
