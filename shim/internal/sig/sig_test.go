package sig

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRoundTrip: Parse accepts every form of every signal's name, and its number.
func TestRoundTrip(t *testing.T) {
	for s := Signal(1); s <= Max; s++ {
		forms := []string{s.String(), strconv.Itoa(int(s))}
		if s.String() != forms[1] {
			forms = append(forms, "SIG"+s.String(), strings.ToLower("SIG"+s.String()))
		}
		if s > RTMin {
			forms = append(forms, "RTMAX-"+strconv.Itoa(int(RTMax-s)))
		}
		for _, form := range forms {
			if got, err := Parse(form); got != s || err != nil {
				t.Errorf("Parse(%q) = %d, %v; want %d", form, int(got), err, int(s))
			}
		}
	}
}

// TestUnnamed: numbers without a name print as numbers; the real-time range has names.
func TestUnnamed(t *testing.T) {
	for s, want := range map[Signal]string{0: "0", 32: "32", 33: "33", 34: "RTMIN", 37: "RTMIN+3", 64: "RTMIN+30", 65: "65", -1: "-1"} {
		if s.String() != want {
			t.Errorf("%d is called %q, want %q", int(s), s.String(), want)
		}
	}
}

// TestParse: forms that TestRoundTrip and TestNames do not have.
func TestParse(t *testing.T) {
	for text, want := range map[string]Signal{
		"SigTerm": 15, "usr1": 10, "RTMIN+0": 34, "rtmin+3": 37, "RTMAX": 64, "SIGRTMAX-1": 63, "rtmax-1": 63,
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("Parse(%q) = %d, %v; want %d", text, int(got), err, int(want))
		}
	}
}

// badSignals are refused by Parse and ParseRewrite.
var badSignals = append(strings.Fields(`SIG SIGSIGTERM SIG15 TERMINATE TER
	0 00 65 -1 -15 1.5 0x9 99999999999999999999
	RTMIN+ RTMIN-1 RTMIN+31 RTMIN+x RTMIN+-1 RTMIN++1 RTMIN3 RTMIN+256
	RTMAX- RTMAX+1 RTMAX-31 RTMAX--1 RTMA é`), "", " ", "TERM ", " TERM", "TERM\x00", "RTMIN é")

func TestParseBad(t *testing.T) {
	for _, text := range badSignals {
		got, err := Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) = %v", text, got)
		} else if msg := err.Error(); got != 0 || !strings.Contains(msg, strconv.Quote(text)) || !strings.Contains(msg, "1 to 64") {
			t.Errorf("Parse(%q) = %d, %q; want the text and the valid range", text, int(got), msg)
		}
	}
}

func TestParseRewriteBad(t *testing.T) {
	bad := map[string]string{ // a word of the error, by text
		"": "FROM:TO", "TERM": "FROM:TO", "15": "FROM:TO",
		"TERM:USR1:HUP": `"USR1:HUP"`, "TERM: USR1": `" USR1"`,
	}
	for _, s := range badSignals {
		bad[s+":TERM"] = strconv.Quote(s)
		if s != "0" {
			bad["TERM:"+s] = strconv.Quote(s)
		}
	}
	for text, says := range bad {
		if got, err := ParseRewrite(text); err == nil {
			t.Errorf("ParseRewrite(%q) = %v", text, got)
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("ParseRewrite(%q): %q; want %s in it", text, err, says)
		}
	}
}

// TestRewrites: a signal without a rewrite passes, rewrites do not chain, and a refused
// second rewrite of a signal changes nothing.
func TestRewrites(t *testing.T) {
	var rs Rewrites
	for s := Signal(1); s <= Max; s++ {
		if to, ok := rs.Of(s); to != s || !ok {
			t.Errorf("without a rewrite %v becomes %v, %v", s, to, ok)
		}
	}
	for _, r := range []Rewrite{{TERM, USR1}, {USR1, HUP}, {HUP, 0}, {64, 1}} {
		if err := rs.Add(r); err != nil {
			t.Errorf("Add(%v): %v", r, err)
		}
	}
	if err := rs.Add(Rewrite{TERM, INT}); err == nil || !strings.Contains(err.Error(), "TERM") {
		t.Errorf("a second rewrite of TERM: %v", err)
	}
	want := map[Signal]Signal{TERM: USR1, USR1: HUP, HUP: 0, 64: 1}
	for s := Signal(1); s <= Max; s++ {
		to, ok := rs.Of(s)
		wantTo, given := want[s]
		if !given {
			wantTo = s
		}
		if to != wantTo || ok != (wantTo != 0) || rs.Given().Has(s) != given {
			t.Errorf("%v becomes %v, %v (given: %v); want %v", s, to, ok, rs.Given().Has(s), wantTo)
		}
	}
}

func TestSet(t *testing.T) {
	var all []Signal
	for s := Signal(1); s <= Max; s++ {
		one := SetOf(s)
		for other := Signal(-1); other <= Max+1; other++ {
			if one.Has(other) != (other == s) {
				t.Errorf("SetOf(%v).Has(%d) = %v", s, int(other), one.Has(other))
			}
		}
		if one.With(s) != one || one.Without(one) != 0 || one.Without(SetOf()) != one {
			t.Errorf("SetOf(%v) is %b", s, one)
		}
		all = append(all, s)
	}
	if got := slices.Collect(SetOf(all...).All); !slices.Equal(got, all) {
		t.Errorf("all signals are %v", got)
	}
	some := SetOf(TERM, 64, 1, TERM).With(HUP).Without(SetOf(64, USR1))
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
