//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"loam/exec/library"
)

// programs are the programs of this system that the workloads run.
var programs = []string{"/usr/bin/dash", "/usr/bin/sleep", "/usr/bin/true", "/usr/bin/redis-server", "/usr/bin/redis-benchmark", "/usr/bin/redis-cli"}

// add copies a program of this system, its loader and its libraries into the root folder.
func (b *built) add(program string) error {
	needs, err := library.Host{}.Find(program)
	if err != nil {
		return err
	}
	files := []string{program, needs.Interp}
	for _, l := range needs.Libraries {
		files = append(files, l.Path)
	}
	for _, f := range files {
		if f == "" {
			continue
		}
		data, err := os.ReadFile(f)
		if err == nil {
			err = os.MkdirAll(filepath.Join(b.root, filepath.Dir(f)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(b.root, f), data, 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// workload is a command whose output has results.
type workload struct {
	name    string
	command []string
	// parse calls add for each result: nanoseconds of one operation.
	parse func(output string, add func(row string, ns float64))
}

func (b *built) workloads() []workload {
	micro := workload{"micro", []string{"/micro", "-span", span.String(), "-only", *only}, parseMicro}
	if *only != "" {
		return []workload{micro}
	}
	return []workload{micro, {"redis", []string{"/usr/bin/dash", "-c", redis}, parseRedis}}
}

func parseMicro(output string, add func(string, float64)) {
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		var r struct {
			Name string
			NS   float64
		}
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Name != "" {
			add(r.Name, r.NS)
		}
	}
}

// redis runs the server and its benchmark over the loopback of the machine: one client, fifty, and fifty with pipelines of 16
// requests.
const redis = `
/usr/bin/redis-server --save '' --daemonize no --loglevel warning --io-threads 1 >/tmp/redis.log 2>&1 &
until /usr/bin/redis-cli ping >/dev/null 2>&1; do /usr/bin/sleep 0.1; done
for c in '1 2000 1' '50 10000 1' '50 40000 16'; do
	set -- $c
	/usr/bin/redis-benchmark -t set,get -c $1 -n $2 -P $3 --csv | while IFS= read -r line; do echo "redis $1 $3 $line"; done
done
/usr/bin/redis-cli shutdown nosave
wait
`

// parseRedis reads lines like: redis 50 16 "SET","12345.67",...
func parseRedis(output string, add func(string, float64)) {
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		words := strings.SplitN(strings.TrimSpace(lines.Text()), " ", 4)
		if len(words) != 4 || words[0] != "redis" {
			continue
		}
		fields := strings.Split(words[3], ",")
		if len(fields) < 2 {
			continue
		}
		test := strings.Trim(fields[0], `"`)
		rate, err := strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
		if err != nil || rate == 0 {
			continue
		}
		name := fmt.Sprintf("redis %s, %s clients", test, words[1])
		if words[2] != "1" {
			name += ", pipelines of " + words[2]
		}
		add(name, 1e9/rate)
	}
}
