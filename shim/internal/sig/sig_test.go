package sig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// TestParse: the forms of signals that are special, and of all in general.
func TestParse(t *testing.T) {
	parses := func(form string, want Signal) {
		if got, err := Parse(form); got != want || err != nil {
			t.Errorf("Parse(%q) = %d, %v; want %d", form, int(got), err, int(want))
		}
	}
	for _, cells := range tables.Rows(`
		# number | its name, and other forms
		6  | ABRT IOT
		15 | TERM SIGTERM sigterm SigTerm
		17 | CHLD CLD
		29 | IO POLL
		31 | SYS UNUSED
		32 | 32
		34 | RTMIN RTMIN+0 SIGRTMIN RTMAX-30
		37 | RTMIN+3 rtmin+3 RTMAX-27
		64 | RTMIN+30 RTMAX SIGRTMAX-0
	`) {
		number, _ := strconv.Atoi(cells[0])
		forms := strings.Fields(cells[1])
		if name := Signal(number).String(); name != forms[0] {
			t.Errorf("%d is called %q, want %q", number, name, forms[0])
		}
		for _, form := range forms {
			parses(form, Signal(number))
		}
	}
	for s := Signal(1); s <= Max; s++ {
		parses(s.String(), s)
		parses(strconv.Itoa(int(s)), s)
	}
	if got := fmt.Sprint(Signal(0), Signal(65)); got != "0 65" {
		t.Errorf("0 and 65 are called %s", got)
	}
}

func TestParseBad(t *testing.T) {
	bad := strings.Fields(`SIGSIGTERM SIG15 TER 0 65 -1 1.5 0x9 99999999999999999999
		RTMIN+ RTMIN-1 RTMIN+31 RTMIN+x RTMIN++1 RTMIN3 RTMAX+1 RTMAX-31 é`)
	for _, text := range append(bad, "", "TERM ", "TERM\x00") {
		got, err := Parse(text)
		if got != 0 || err == nil || !strings.Contains(err.Error(), strconv.Quote(text)) || !strings.Contains(err.Error(), "1 to 64") {
			t.Errorf("Parse(%q) = %d, %v; want an error with the text and the valid range", text, int(got), err)
		}
	}
}

func TestParseRewrite(t *testing.T) {
	for _, cells := range tables.Rows(`
		# text | rewrite | a word of the error
		SIGTERM:10    | TERM:USR1 |
		HUP:0         | HUP:0     |
		TERM          |           | FROM:TO
		0:TERM        |           | "0"
		TERM:65       |           | "65"
		TERM:USR1:HUP |           | "USR1:HUP"
	`) {
		got, err := ParseRewrite(cells[0])
		if cells[2] == "" && (err != nil || got.String() != cells[1]) {
			t.Errorf("ParseRewrite(%q) = %v, %v", cells[0], got, err)
		}
		if !strings.Contains(fmt.Sprint(err), cells[2]) {
			t.Errorf("ParseRewrite(%q): %v; want %s in it", cells[0], err, cells[2])
		}
	}
}

// TestRewrites: a signal without a rewrite passes, rewrites do not chain, and the first one of a
// signal counts.
func TestRewrites(t *testing.T) {
	list := Rewrites{{TERM, USR1}, {USR1, HUP}, {HUP, 0}, {TERM, INT}}
	for s, want := range map[Signal]Signal{TERM: USR1, USR1: HUP, HUP: 0, INT: INT} {
		if to, given := list.Of(s); to != want || given != (want != s) {
			t.Errorf("%v becomes %v (given: %v); want %v", s, to, given, want)
		}
	}
}

func TestSet(t *testing.T) {
	all := SetOf()
	for s := Signal(1); s <= Max; s++ {
		before := all
		all = all.With(s)
		if before.Has(s) || !all.Has(s) {
			t.Errorf("a set without %v: %b, and with: %b", s, before, all)
		}
	}
	if all.Has(-1) || all.Has(0) || all.Has(Max+1) {
		t.Error("the set of all signals has more")
	}
	some := SetOf(TERM, Max, HUP).Without(SetOf(Max, USR1))
	if got := slices.Collect(some.All); !slices.Equal(got, []Signal{HUP, TERM}) {
		t.Errorf("All: %v", got)
	}
	for s := range some.All {
		if s != HUP {
			t.Errorf("All goes on to %v after the break", s)
		}
		break
	}
}
