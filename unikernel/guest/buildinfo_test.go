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
