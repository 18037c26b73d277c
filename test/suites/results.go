package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// The results of all units are in docs/suites.jsonl, one in a line, with the commit that each unit ran on. They are
// written after each unit, so a run can be interrupted, and units can be run on different days.
const (
	resultsFile  = "docs/suites.jsonl"
	documentFile = "docs/suites.md"
)

// key returns the key of a unit's result.
func key(u unit) string { return u.suite + ":" + u.name() }

// readResults reads results by the keys of their units. A file that does not exist has none.
func readResults(name string) (map[string]comparison, error) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	results := map[string]comparison{}
	for line := range bytes.Lines(text) {
		var c comparison
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		results[c.Suite+":"+c.Unit] = c
	}
	return results, nil
}

// writeResults writes the results of units in the order of the units.
func writeResults(name string, units []unit, results map[string]comparison) error {
	var b bytes.Buffer
	list, _ := inOrder(units, results)
	for _, c := range list {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// inOrder returns the results in the order of the units, and the units without a result.
func inOrder(units []unit, results map[string]comparison) (list []comparison, missing []unit) {
	for _, u := range units {
		if c, ok := results[key(u)]; ok {
			list = append(list, c)
		} else {
			missing = append(missing, u)
		}
	}
	return list, missing
}

// commit returns the abbreviated hash of the commit in the work tree. If files other than documents differ from the
// commit, "+" follows.
func commit() (string, error) {
	hash, err := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!*.md").Output()
	if err != nil {
		return "", fmt.Errorf("git status: %w", err)
	}
	mark := ""
	if len(changed) > 0 {
		mark = "+"
	}
	return strings.TrimSpace(string(hash)) + mark, nil
}
