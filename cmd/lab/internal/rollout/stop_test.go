package rollout

import "testing"

func TestEnded(t *testing.T) {
	for report, want := range map[string]string{
		`{"message":"TERM: holding 5 s","ended":null,"lull":null}` + "\n" + `{"message":"TERM: held 19.0 s","ended":"ceiling","lull":false}` + "\n": "ceiling",
		"the server's line\n" + `{"message":"TERM: held 5.0 s","ended":"kept","lull":true}` + "\n":                                                  "kept at a lull",
		`{"message":"TERM passed on at once"}`: "",
	} {
		if got := ended(report); got != want {
			t.Errorf("the reason in %q is %q, want %q", report, got, want)
		}
	}
}
