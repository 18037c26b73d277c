//go:build linux && !race

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

const report = "../../docs/servers.md"

// writeReport writes docs/servers.md.
func writeReport(rows []row, seconds int) error {
	var b strings.Builder
	version, _ := exec.Command("go", "env", "GOVERSION").Output()
	fmt.Fprintf(&b, `# Well-known servers on Loam

Made by %s, %s on %d CPUs, which server and client share.
Each server is built from its module as it is, with %s on the network
that needs no privilege (examples/web is ours), and loaded for %d s by a client that knows nothing of
Loam; then on Linux, for %d s at most. An error is whatever the client counts as one.
Ctrl-C ended every server with status 0.

| server | load | on Loam | errors | on Linux | ratio | grew on Loam, KiB | grew on Linux, KiB |
|---|---|--:|--:|--:|--:|--:|--:|
`, "`make servers`", strings.TrimSpace(string(version)), runtime.NumCPU(), "`loam run`", seconds, int(linuxTime.Seconds()))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %.0f %s | %d | %.0f | %.2f | %d | %d |\n", r.server, r.load,
			r.loam.rate, r.loam.unit, r.loam.errors, r.linux.rate, r.loam.rate/r.linux.rate, r.loam.grown, r.linux.grown)
	}
	b.WriteString(`
*Grew* is the difference between the server's memory at the end of the load and after a third of it.
pebble-challtestsrv keeps every question on purpose. The gateway uses a part of the CPUs: a connection to the program
consists of a connection of the host and one of Loam, and each byte passes through both.

The two systems were measured one after the other, once. The ratios are rough if the machine did other work at the
time; test/bench measures more accurately.

| server | module |
|---|---|
`)
	for _, s := range servers {
		fmt.Fprintf(&b, "| %s | %s |\n", s.name, s.pkg)
	}
	return os.WriteFile(report, []byte(b.String()), 0o644)
}
