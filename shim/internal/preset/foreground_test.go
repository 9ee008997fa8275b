package preset

import "testing"

// TestForeground: each name in the table of foreground settings is a preset's.
func TestForeground(t *testing.T) {
	for name := range foreground {
		if p, ok := Named(name); !ok || p.Foreground() == "" {
			t.Errorf("%s: %v", name, p)
		}
	}
}
