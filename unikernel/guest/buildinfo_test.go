package guest

import "testing"

func TestRestoreModule(t *testing.T) {
	const (
		begin, end = "0123456789abcdefpath\texample.org/m/cmd\n", "build\tCGO_ENABLED=0\nfedcba9876543210"
		copied     = "=>\t/home/u/.cache/loam\t(devel)\t\n"
		other      = "dep\texample.org/o\tv2.0.0\n=>\t./o\t(devel)\t\n"
	)
	for _, kind := range []string{"mod", "dep"} {
		line := kind + "\texample.org/m\tv1.2.3"
		before := begin + line + "\n" + copied + other + end
		if got, want := RestoreModule(before, "example.org/m h1:sum="), begin+line+"\th1:sum=\n"+other+end; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		for _, borrowed := range []string{"", "example.org/x h1:sum="} {
			if got := RestoreModule(before, borrowed); got != before {
				t.Errorf("%q borrowed: %q", borrowed, got)
			}
		}
	}
	if got := RestoreModule("", "example.org/m h1:sum="); got != "" {
		t.Errorf("no information becomes %q", got)
	}
}

func TestHideProfile(t *testing.T) {
	const begin, end = "0123456789abcdefpath\texample.org/m/cmd\nbuild\t-compiler=gc\n", "build\tCGO_ENABLED=0\nfedcba9876543210"
	for _, own := range []string{
		"build\t-gcflags=loamguest/...=-pgoprofile=/home/u/.cache/loam/std/0/loam.pgo\n",
		"build\t-gcflags=\"loamguest/...='-pgoprofile=/home/u u/loam.pgo'\"\n",
	} {
		if got := HideProfile(begin + own + end); got != begin+end {
			t.Errorf("of %q is left %q", own, got)
		}
	}
	for _, others := range []string{"", "build\t-gcflags=all=-N\n"} {
		if got, want := HideProfile(begin+others+end), begin+others+end; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := HideProfile(""); got != "" {
		t.Errorf("no information becomes %q", got)
	}
}
