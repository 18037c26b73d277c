package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The programs in unikernel/testdata/guest check, from within, what package net
// and the system calls below it promise a program on Loam.
func TestGuests(t *testing.T) {
	loam := command(t)
	for _, name := range []string{"child", "early", "raw", "sockets"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, loam().Path, "run", "--net", "none", "./"+name)
			cmd.Dir = "../../unikernel/testdata/guest"
			out, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "ok" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
