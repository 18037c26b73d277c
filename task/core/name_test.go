package core

import (
	"testing"

	"loam/task/signal"
)

// The name of a core dump follows the pattern as in Linux's format_corename.
func TestName(t *testing.T) {
	d := &Dump{PID: 7, UID: 3, GID: 4, Name: "a/b", Program: "/bin/prog", Limit: 9, Signal: signal.Info{Signal: 11}, Threads: []Thread{{ID: 8}}}
	for _, test := range []struct {
		pattern string
		usesPID int64
		want    string
	}{
		{"core", 0, "core"}, {"core", 1, "core.7"}, {"core%p", 1, "core7"}, {"%%p", 1, "%p.7"}, {"", 0, ""},
		{"/d/%e-%f-%E", 0, "/d/a!b-prog-!bin!prog"}, {"%i.%I.%P.%u.%g.%s.%d.%c.%h%", 0, "8.8.7.3.4.11.1.9.host"}, {"x%qy%", 0, "xy"},
	} {
		var s Settings
		s.SetPattern(test.pattern)
		s.UsesPID.Store(test.usesPID)
		if got := d.name(&s, "host"); got != test.want {
			t.Errorf("%q: %q, want %q", test.pattern, got, test.want)
		}
	}
	if got := component("..") + component(".") + component(""); got != "!.!!" {
		t.Errorf("special names: %q", got)
	}
}
