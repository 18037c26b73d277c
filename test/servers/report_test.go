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

This table is made by %s with %s, on %d CPUs that the server and its client share.
%s builds each server from its unmodified module, and runs it as a process on the network that needs no
privilege. An ordinary client loads it for %d s. The same server then runs on Linux, where it is loaded for at most %d s.
*Errors* are the errors that the client reports. Every server ended with exit status 0 after Ctrl-C.

| server | load | rate on Loam | errors on Loam | rate on Linux | rate on Loam / rate on Linux | memory growth on Loam, KiB | memory growth on Linux, KiB |
|---|---|--:|--:|--:|--:|--:|--:|
`, "`make servers`", strings.TrimSpace(string(version)), runtime.NumCPU(), "`loam run`", seconds, int(linuxTime.Seconds()))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %.0f %s | %d | %.0f | %.2f | %d | %d |\n", r.server, r.load,
			r.loam.rate, r.loam.unit, r.loam.errors, r.linux.rate, r.loam.rate/r.linux.rate, r.loam.grown, r.linux.grown)
	}
	b.WriteString(`
*Memory growth* is the size of the server's memory at the end of the load, minus its size after a third of the load.
pebble-challtestsrv stores every query on purpose. On Loam, the gateway needs a part of the CPU time: the program has a
connection of Loam to the gateway, the gateway has a connection of the host to the client, and each byte passes through both.

Loam and Linux were measured once, Loam first. If the machine did other work at the time, the ratios are rough;
test/bench measures more accurately.

| server | module |
|---|---|
`)
	for _, s := range servers {
		fmt.Fprintf(&b, "| %s | %s |\n", s.name, s.pkg)
	}
	return os.WriteFile(report, []byte(b.String()), 0o644)
}
