//go:build linux && !race

package daemons

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

const endOfRound = "\nend of the first round\n"

// A hundred short commands run four at a time in a random order, again and again. Each prints what it prints on Linux, and
// ends with the same status, in the first round and in all others.
func TestMix(t *testing.T) {
	if !*run {
		t.Skip("-daemons is not given")
	}
	root, scripts, loam := image(t), scriptFolder(t), buildLoam(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	onLinux, _ := mixed(t, linuxCommand(ctx, root, scripts, "mix", 0))
	onLoam, rest := mixed(t, onLoam(ctx, loam, root, scripts, "mix", *seconds))
	t.Logf("%s", rest)
	if len(onLinux) != len(onLoam) {
		t.Fatalf("%d commands on Loam, %d on Linux", len(onLoam), len(onLinux))
	}
	for i, want := range onLinux {
		if onLoam[i] != want {
			t.Errorf("on Loam: command %s\non Linux: command %s", onLoam[i], want)
		}
	}
}

// mixed runs testdata/mix.sh. It returns the text of each command of the first round, and the text after this round.
func mixed(t *testing.T, cmd *exec.Cmd) (commands []string, rest string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	first, rest, ended := strings.Cut(string(out), endOfRound)
	if err != nil || !ended || strings.Contains(rest, "\nFAIL") || !strings.HasSuffix(rest, "\ndone\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(first, "\ncommand ")[1:], rest
}
