// Command folders measures a tree of small files in a folder of the host, as a program on Linux and as a process on Loam
// with -v FOLDER:/tree:rw. For the bounds, it also measures the system calls of Loam's server alone (program calls), and the
// program with files in Loam's memory. All take turns, and the medians and their ratios are printed as a table in Markdown.
//
// Run it from the root of the repository: go run ./test/folders. It needs some 200 MB of disk.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	files  = flag.Int("files", 40000, "number of files")
	size   = flag.Int("bytes", 1000, "size of a file")
	rounds = flag.Int("rounds", 5, "how often each side has its turn")
	loam   = flag.String("loam", "", "the loam command; built from ./cmd/loam by default")
	old    = flag.String("old", "", "also measure this loam command, for example of an earlier version")
	in     = flag.String("in", os.TempDir(), "where the folders are created")
	cpu    = flag.Bool("cpu", false, "print CPU time, which depends less on the load; on Loam that of the program's process only, without the server")
	image  = flag.Bool("image", false, "also measure a disk, an image with an ext4 file system")
	cache  = flag.String("cache", "", "also measure a cache mode: none")
)

// phases are the steps of program tree, in order.
var phases = []string{"create", "stat", "walk", "read", "round", "remove"}

// Folders of the programs that are measured.
const (
	program = "./test/folders/tree"
	bound   = "./test/folders/calls"
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "folders:", err)
		os.Exit(1)
	}
}

// side is an environment that is measured.
type side struct {
	name    string
	command func(phase, folder string) *exec.Cmd // phase may be several phases, separated by commas
	forgets bool                                 // the files do not outlast the command, so one command runs all phases
	served  bool                                 // Loam's server accesses the files
	times   map[string][]time.Duration           // by phase
}

func run() error {
	work, err := os.MkdirTemp(*in, "loam-folders-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := build(work); err != nil {
		return err
	}
	sides := []*side{
		onLinux("Linux", filepath.Join(work, "tree")), onLinux("the server's calls", filepath.Join(work, "calls")),
		inMemory("Loam, memory", *loam),
	}
	modes := []string{"rw"}
	if *cache != "" {
		modes = append(modes, "rw,cache="+*cache)
	}
	for _, mode := range modes {
		sides = append(sides, onLoam("Loam, "+mode, *loam, mode))
		if *old != "" {
			sides = append(sides, onLoam("old Loam, "+mode, *old, mode))
		}
	}
	if *image {
		sides = append(sides, onImage("Loam, image", *loam))
	}
	before := load()
	for range *rounds {
		for _, s := range sides {
			if err := s.turn(work); err != nil {
				return err
			}
		}
	}
	report(sides, before)
	return nil
}

// onLinux returns the side of a program that runs on Linux.
func onLinux(name, path string) *side {
	return &side{name: name, command: func(phase, folder string) *exec.Cmd {
		return exec.Command(path, arguments(phase, folder)...)
	}}
}

// onLoam returns the side of a program that runs on Loam, started by a loam command (the parameter loam).
func onLoam(name, loam, mode string) *side {
	return &side{name: name, served: true, command: func(phase, folder string) *exec.Cmd {
		args := []string{"run", "--platform", "process", "--net", "none", "-v", folder + ":/tree:" + mode, program, "--"}
		return exec.Command(loam, append(args, arguments(phase, "/tree")...)...)
	}}
}

// onImage returns the side of a program that runs on Loam with the files on a disk, an image in the folder.
func onImage(name, loam string) *side {
	return &side{name: name, command: func(phase, folder string) *exec.Cmd {
		disk := filepath.Join(folder, "disk.img") + ":/tree"
		args := []string{"run", "--platform", "process", "--net", "none", "--disk", disk, "--disk-size", "1G", program, "--"}
		return exec.Command(loam, append(args, arguments(phase, "/tree/all")...)...)
	}}
}

// inMemory returns the side of a program that runs on Loam and keeps the files in Loam's memory.
func inMemory(name, loam string) *side {
	return &side{name: name, forgets: true, command: func(phase, _ string) *exec.Cmd {
		args := []string{"run", "--platform", "process", "--net", "none", program, "--"}
		return exec.Command(loam, append(args, arguments(phase, "/tmp/tree")...)...)
	}}
}

func arguments(phase, folder string) []string {
	return []string{phase, folder, strconv.Itoa(*files), strconv.Itoa(*size)}
}

// build builds the programs for Linux, and the loam command.
func build(work string) error {
	builds := [][]string{
		{"build", "-o", filepath.Join(work, "tree"), program},
		{"build", "-o", filepath.Join(work, "calls"), bound},
	}
	if *loam == "" {
		*loam = filepath.Join(work, "loam")
		builds = append(builds, []string{"build", "-o", *loam, "./cmd/loam"})
	}
	for _, args := range builds {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

// turn runs all phases of a measurement once, in a new folder.
func (s *side) turn(work string) error {
	folder, err := os.MkdirTemp(work, "turn-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if s.times == nil {
		s.times = map[string][]time.Duration{}
	}
	if s.forgets {
		return s.run(slices.Concat(phases, phases), folder) // the first time, the memory for the files is new, too
	}
	for _, phase := range phases {
		if err := s.run([]string{phase}, folder); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command for phases, and records their times. Of a phase that occurs twice, it records the second time.
func (s *side) run(phases []string, folder string) error {
	cmd := s.command(strings.Join(phases, ","), folder)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s, %s: %w: %s", s.name, phases, err, errors.Bytes())
	}
	in := bytes.NewReader(out)
	for i, phase := range phases {
		var took, used int64
		if _, err := fmt.Fscan(in, &took, &used); err != nil {
			return fmt.Errorf("%s, %s: %w", s.name, phase, err)
		}
		if *cpu {
			took = used
		}
		if slices.Contains(phases[i+1:], phase) {
			continue
		}
		s.times[phase] = append(s.times[phase], time.Duration(took))
	}
	return nil
}

// median returns the median of a phase, in microseconds for each file.
func (s *side) median(phase string) float64 {
	all := slices.Sorted(slices.Values(s.times[phase]))
	return float64(all[len(all)/2].Nanoseconds()) / 1e3 / float64(*files)
}

func report(sides []*side, before string) {
	unit := "µs"
	if *cpu {
		unit = "µs of CPU time"
	}
	fmt.Printf("%d files of %d bytes, medians of %d rounds, in %s for each file; load %s before, %s after\n\n",
		*files, *size, *rounds, unit, before, load())
	fmt.Print("| phase |")
	for i, s := range sides {
		fmt.Printf(" %s |", s.name)
		if i > 0 {
			fmt.Print(" ratio |")
		}
	}
	fmt.Print("\n|---" + strings.Repeat("|---", 2*len(sides)-1) + "|\n")
	for _, phase := range phases {
		fmt.Printf("| %s |", phase)
		for i, s := range sides {
			fmt.Printf(" %.2f |", s.median(phase))
			if i > 0 {
				fmt.Printf(" %.2f |", s.median(phase)/sides[0].median(phase))
			}
		}
		fmt.Println()
	}
	for _, s := range sides[3:] {
		if s.served {
			bounds(s, sides[0], sides[1], sides[2])
		}
	}
}

// trips is the number of round trips for which a program waits for each file.
var trips = map[string]float64{"create": 2, "remove": 1}

// bounds prints the least ratio that a phase can have on Loam: the time of the program in Loam's memory, of the server's calls and
// of the round trips, divided by the time on Linux. The time of a round trip is that of phase round without the server's call and
// without the program's part.
func bounds(s, linux, calls, memory *side) {
	trip := s.median("round") - calls.median("round") - memory.median("round")
	fmt.Printf("\n%s: a round trip takes %.2f µs", s.name, trip)
	for _, phase := range phases {
		if n := trips[phase]; n > 0 {
			fmt.Printf("; the bound of %s is %.2f", phase, (memory.median(phase)+calls.median(phase)+n*trip)/linux.median(phase))
		}
	}
	fmt.Println()
}

// load returns the load average of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
