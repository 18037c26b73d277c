//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// ringRows are the rows of redis and nginx for which -rings counts the instructions of the kernel.
var ringRows = []string{
	"redis SET, 1 client", "redis GET, 1 client", "redis SET, 50 clients", "redis GET, 50 clients",
	"redis SET, 50 clients, pipelines of 16", "redis GET, 50 clients, pipelines of 16",
	"nginx, file of 1 KiB, 1 connection",
}

const ringIntro = `The table was made by ` + "`go run ./test/processes -rings`" + ` on %s. Client and server run in the same machine.

- **kernel**: the share of all instructions that the machine executes in ring 0, on Linux. The rest is executed by the
  programs in ring 3, which are the same files on both systems.
- **bound**: the greatest possible ratio of Linux to Loam, 1/(1-k) for the kernel's share k on Linux. A kernel that needs no
  instruction at all would reach it.
- **kernel for 1.3**: the number of instructions in ring 0 with which a kernel reaches the ratio 1.3, as a share of Linux's
  number in ring 0.

| operation | kernel | bound | kernel for 1.3 |
|---|---:|---:|---:|
`

// rings prints the table of ringRows, or only the rows that begin with the value of -only.
func rings(ctx context.Context, dir string) error {
	b, result, err := buildCounting(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Printf(ringIntro, time.Now().Format("2 January 2006"))
	for _, row := range ringRows {
		if !strings.HasPrefix(row, *only) {
			continue
		}
		w := workload{name: row, command: endless(row), warm: warmServer}
		p, err := b.counted(ctx, onLinux, w, result)
		if err != nil {
			return err
		}
		fmt.Print(ringRow(row, p))
	}
	return nil
}

// ringRow returns a row of the table.
func ringRow(row string, linux *profiled) string {
	const aim = 1.3
	k := float64(linux.kernel()) / float64(linux.total)
	return fmt.Sprintf("| %s | %.1f %% | %.2f | %.1f %% |\n", row, 100*k, 1/(1-k), 100*(1/aim-(1-k))/k)
}
