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
var programs = []string{
	"/usr/bin/dash", "/usr/bin/sleep", "/usr/bin/true", "/usr/bin/redis-server", "/usr/bin/redis-benchmark", "/usr/bin/redis-cli",
	"/usr/bin/wrk", "/usr/sbin/nginx",
}

// add copies a program of this system, its loader and its libraries into the root folder. If the program is not
// installed at its path, add looks in the folder of extracted packages.
func (b *built) add(program string) error {
	from := program
	if cache, err := os.UserCacheDir(); err == nil {
		const extracted = "loam-ci" // the folder that go run ./internal/ci packages fills
		if f := filepath.Join(cache, extracted, program); !exists(program) && exists(f) {
			from = f
		}
	}
	needs, err := library.Host{}.Find(from)
	if err != nil {
		return err
	}
	files := map[string]string{program: from, needs.Interp: needs.Interp}
	for _, l := range needs.Libraries {
		files[l.Path] = l.Path
	}
	delete(files, "")
	for to, from := range files {
		if err := copyFile(from, filepath.Join(b.root, to)); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// workload is a command whose output has results.
type workload struct {
	name    string
	command []string
	// parse calls add for each result: nanoseconds of one operation.
	parse func(output string, add func(row string, ns float64))

	disk     *hardware // a disk with a file system: see disk.go; nil: none
	cached   bool      // cached names are measured
	recovers bool      // the journal of the disk must be recovered
	whole    string    // name of the row for the time of the whole machine; empty: parse has the results

	cpus         int // number of CPUs of the machine if instructions are counted by function; 0: one
	warm, sample int // numbers of instructions for a profile; 0: those of micro
}

// allMicro is the value of -only for all rows of micro.
const allMicro = "micro"

func (b *built) workloads(cpus int) []workload {
	if *only == onDisk {
		return b.diskWorkloads(cpus)
	}
	micro := workload{name: "micro", command: []string{"/micro", "-span", span.String(), "-only", strings.TrimPrefix(*only, allMicro)}, parse: parseMicro}
	all := []workload{
		micro, {name: "redis", command: []string{"/usr/bin/dash", "-c", redis}, parse: parseRedis},
		{name: "nginx", command: []string{"/usr/bin/dash", "-c", nginx}, parse: parseNginx},
	}
	if *only == "" {
		return all
	}
	for _, w := range all[1:] {
		if w.name == *only {
			return []workload{w}
		}
	}
	return []workload{micro}
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

// count returns a number of things as text.
func count(n, thing string) string {
	if n == "1" {
		return n + " " + thing
	}
	return n + " " + thing + "s"
}

// sizeText separates the number and the unit of a size such as 1KiB.
func sizeText(size string) string { return size[:1] + " " + size[1:] }

// redisServer starts redis and waits until it answers.
const redisServer = `
/usr/bin/redis-server --save '' --daemonize no --loglevel warning --io-threads 1 >/tmp/redis.log 2>&1 &
until /usr/bin/redis-cli ping >/dev/null 2>&1; do /usr/bin/sleep 0.1; done
`

// redis runs the server and its benchmark over the loopback of the machine: one client, fifty, and fifty with pipelines of 16
// requests.
const redis = redisServer + `
for c in '1 20000 1' '50 10000 1' '50 40000 16'; do
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
		name := fmt.Sprintf("redis %s, %s", test, count(words[1], "client"))
		if words[2] != "1" {
			name += ", pipelines of " + words[2]
		}
		add(name, 1e9/rate)
	}
}

// nginxServer starts nginx with one worker, with files of 1 KiB and 1 MiB, and waits until it answers.
const nginxServer = `
echo root:x:0:0:root:/:/bin/sh > /etc/passwd
echo root:x:0: > /etc/group
echo 'user root root; daemon off; worker_processes 1; pid /tmp/nginx.pid; error_log stderr warn; events { worker_connections 1024; }
http {
	access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;
	client_body_temp_path /tmp/1; proxy_temp_path /tmp/2; fastcgi_temp_path /tmp/3; uwsgi_temp_path /tmp/4; scgi_temp_path /tmp/5;
	server { listen 8080; root /tmp; }
}' > /tmp/nginx.conf
text=0123456789abcdef0123456789abcdef
for i in 1 2 3 4 5; do text=$text$text; done
printf %s "$text" > /tmp/1KiB
for i in 1 2 3 4 5 6 7 8 9 10; do text=$text$text; done
printf %s "$text" > /tmp/1MiB
/usr/sbin/nginx -e stderr -c /tmp/nginx.conf &
until /usr/bin/wrk -t 1 -c 1 -d 1s http://127.0.0.1:8080/1KiB | while IFS= read -r line; do case $line in Requests/sec*) exit 1;; esac; done; [ $? = 1 ]; do /usr/bin/sleep 0.1; done
`

// nginx runs the server, and wrk over the loopback of the machine: files of 1 KiB and 1 MiB, with one connection and with 64.
const nginx = nginxServer + `
for c in '1KiB 1' '1KiB 64' '1MiB 1' '1MiB 64'; do
	set -- $c
	/usr/bin/wrk -t 1 -c $2 -d 2s --timeout 60s http://127.0.0.1:8080/$1 | while IFS= read -r line; do
		case $line in Requests/sec*|*Socket?errors*|*Non-2xx*) echo "nginx $1 $2 $line";; esac
	done
done
kill $!
wait
`

// parseNginx reads lines like: nginx 1KiB 64 Requests/sec: 1234.56. A line about errors precedes the rate of the same row.
func parseNginx(output string, add func(string, float64)) {
	failed := ""
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 5 || words[0] != "nginx" {
			continue
		}
		row := fmt.Sprintf("nginx, file of %s, %s", sizeText(words[1]), count(words[2], "connection"))
		rate, err := strconv.ParseFloat(words[4], 64)
		switch {
		case words[3] != "Requests/sec:":
			failed = row
		case err == nil && rate > 0 && row != failed:
			add(row, 1e9/rate)
		}
	}
}
