// Command guest runs one test of the kernel, named by its first argument, and prints the result.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/arch/amd64"
	"loam/driver"
	"loam/kernel"
	"loam/kernel/device"
)

// cases are the tests, by the first argument.
var cases = map[string]func(){
	"hello":        func() { fmt.Println("hello") },
	"words":        words,
	"exit":         func() { os.Exit(7) },
	"panic":        func() { panic("on purpose") },
	"nil":          nilPointer,
	"divide":       divide,
	"wild":         wild,
	"readonly":     readOnly,
	"overflow":     func() { fmt.Println(overflow(1)) },
	"collect":      collect,
	"loop":         loop,
	"beside":       beside,
	"crowd":        func() { crowd(); awaitSignal() },
	"pingpong":     pingPong,
	"sleep":        sleep,
	"threads":      threads,
	"release":      release,
	"toomuch":      func() { fmt.Println(len(make([]byte, 100<<30))) },
	"exhaust":      exhaust,
	"protection":   protection,
	"sharedline":   sharedLine,
	"devicememory": deviceMemory,
	"bigpages":     bigPages,
	"touch":        touch,
	"zeros":        zeros,
	"clock":        clock,
	"floats":       floats,
	"children":     children,
	"spread":       spread,
	"signal":       func() { awaitSignal(); os.Exit(3) },
	"late":         func() { awaitSignal(); spread(); time.Sleep(time.Hour) },
	"pipe":         pipe,
	"crash":        crash,
	"device":       clockInterrupts,
	"broken":       func() { breakKernel(); time.Sleep(time.Hour) },
	"narrow":       func() { narrowKernel(); enterAll() },
	"blind":        func() { blindKernel(); enterAll() },
	"fault":        func() { fmt.Println(peek(0x1234_5678_9abc)) },
	"illegal":      illegal,
	"trap":         runtime.Breakpoint,
	"deadlock":     func() { select {} },
}

func main() {
	name := "hello"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	cases[name]()
}

// words prints the program's arguments and an environment variable.
func words() { fmt.Printf("%q %q\n", os.Args[2:], os.Getenv("WORD")) }

// recovered calls f, and prints its panic and the function that panicked.
func recovered(f func()) {
	defer func() {
		err := recover().(runtime.Error)
		pc, _, _, _ := runtime.Caller(2) // skips runtime.gopanic and its caller
		fmt.Println(err, pc != 0, strings.Contains(string(debug.Stack()), "main.recovered"))
	}()
	f()
}

//go:noinline
func nilPointer() {
	recovered(func() { *(*int)(nil) = 1 })
	recovered(func() { fmt.Println((*[1000]byte)(nil)[999]) })
}

func divide() {
	zero := len(os.Args) - 2
	recovered(func() { fmt.Println(1 / zero) })
}

// wild reads from an unmapped address.
func wild() {
	debug.SetPanicOnFault(true)
	recovered(func() { fmt.Println(peek(0xffff_d000_0000_0000)) })
	recovered(func() { fmt.Println(peek(0x1234_5678_9abc)) })
	recovered(func() { fmt.Println(peek(0x1234_5678_9abc_def0)) })
}

// readOnly writes to a constant and to code, and executes data. It also tries to write to the code through the window
// onto physical memory.
func readOnly() {
	debug.SetPanicOnFault(true)
	code := codeOf(returns)
	pa, _ := kernel.Physical(uint64(code))
	other := kernel.WindowTo(pa)
	if peek(other) != peek(code) {
		panic("the window shows something else")
	}
	recovered(func() { poke("constant") })
	recovered(func() { pokeAt(code) })
	recovered(func() { pokeAt(other) })
	recovered(func() { jump([]byte{0xc3}) })
	recovered(func() { jumpTo(other) })
}

// protection prints which protection features of the processor the kernel has enabled.
func protection() {
	control, extended := amd64.ReadCR4(), amd64.ReadMSR(amd64.MSREFER)
	fmt.Println("write-protect", amd64.ReadCR0()&amd64.CR0WriteProtect != 0,
		"no-execute", extended&amd64.EFERNoExecute != 0, "SMEP", control&amd64.CR4SMEP != 0,
		"SMAP", control&amd64.CR4SMAP != 0, "UMIP", control&amd64.CR4UMIP != 0,
		"global", control&amd64.CR4PageGlobal != 0, "PCID", control&amd64.CR4ProcessContext != 0)
}

// returns does nothing. Its code is copied and called at other addresses.
//
//go:noinline
func returns() {}

func overflow(n int) int { return overflow(n+1) + 1 }

// collect allocates on several goroutines, keeps some of the objects, and checks them after collections.
func collect() {
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			kept := map[int][]byte{}
			for i := range 10000 {
				kept[i%100] = []byte(strings.Repeat(string(rune('a'+g)), 200+i%300))
			}
			for _, b := range kept {
				for _, c := range b {
					if c != byte('a'+g) {
						panic("memory of another")
					}
				}
			}
		})
	}
	wg.Wait()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println("collected", m.NumGC > 3)
}

// beside waits for another goroutine in a loop that never yields.
func beside() {
	const turns = 20
	for range turns {
		var ran atomic.Bool
		go ran.Store(true)
		for !ran.Load() {
		}
	}
	fmt.Println("ran beside", turns)
}

// loop runs a goroutine that never yields, and checks that a garbage collection completes anyway.
func loop() {
	var stop atomic.Bool
	var turns int
	go func() {
		for !stop.Load() {
			turns++
		}
	}()
	time.Sleep(20 * time.Millisecond)
	for range 3 {
		runtime.GC()
	}
	stop.Store(true)
	fmt.Println("collected beside a loop")
}

// pingPong passes numbers around a ring of goroutines.
func pingPong() {
	const size = 1000
	first := make(chan int)
	in := first
	for range size {
		out := make(chan int)
		go func(in chan int) {
			for v := range in {
				out <- v + 1
			}
			close(out)
		}(in)
		in = out
	}
	sum := 0
	for range 10 {
		first <- 0
		sum += <-in
	}
	close(first)
	<-in
	fmt.Println("sum", sum)
}

// sleep lets many goroutines sleep at the same time, and checks that none wakes early.
func sleep() {
	out := make(chan bool)
	for _, n := range []time.Duration{30, 10, 20, 0} {
		go func() {
			begin := time.Now()
			time.Sleep(n * time.Millisecond)
			out <- time.Since(begin) >= n*time.Millisecond
		}()
	}
	fmt.Println("slept", <-out, <-out, <-out, <-out)
}

// threads locks goroutines to threads, and checks that the threads end with them.
func threads() {
	var wg sync.WaitGroup
	var n atomic.Int32
	for range 200 {
		wg.Go(func() {
			runtime.LockOSThread()
			time.Sleep(time.Millisecond)
			n.Add(1)
		})
		if n.Load()%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	wg.Wait()
	fmt.Println("threads", n.Load())
}

// release allocates more memory in total than the machine has, but frees it in between.
func release() {
	for range 10 {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			if b[i] != 0 {
				panic("memory is not zero")
			}
			b[i] = 1
		}
		b = nil
		debug.FreeOSMemory()
	}
	fmt.Println("released")
}

// plenty is larger than the memory of some of the tested machines.
var plenty [64 << 20]byte

// zeros uses some pages of plenty. A page is allocated when the program first touches it, or when a system call writes
// to it.
func zeros() {
	for i := 0; i < len(plenty); i += len(plenty) / 7 {
		if plenty[i] != 0 {
			panic("memory is not zero")
		}
		plenty[i] = byte(i)
	}
	const written, across = 3 << 20, 5<<20 - 4
	copy(plenty[written:], "zeros\n")
	if n, err := fill(plenty[across:][:8]); n != 8 || err != 0 {
		panic(err)
	}
	if string(plenty[across:][:8]) == string(plenty[:8]) {
		panic("nothing was filled in")
	}
	os.Stdout.Write(plenty[written:][:6])
}

// exhaust allocates until the machine's memory is used up.
func exhaust() {
	var all [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		all = append(all, b)
	}
}

// awaitSignal prints that it is ready, waits for a signal, and prints its number.
func awaitSignal() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	fmt.Println("ready")
	fmt.Println(<-c)
}

// crash causes a fault at a point where the runtime cannot handle it.
func crash() {
	runtime.LockOSThread()
	all := ^uint64(0)
	block(&all)
	fmt.Println(peek(0))
}

// clockInterrupts programs the real-time clock to interrupt periodically, and waits for some of the interrupts.
func clockInterrupts() {
	const index, data = 0x70, 0x71 // I/O ports
	const statusB, statusC, periodic = 0x0b, 0x0c, 1 << 6
	machine := device.Open()
	read := func(register uint8) uint8 {
		machine.Out8(index, register)
		return machine.In8(data)
	}
	i, err := machine.Line(8, driver.EdgeHigh)
	if err != nil {
		panic(err)
	}
	b := read(statusB)
	machine.Out8(data, b|periodic)
	for range 10 {
		read(statusC) // reading this register allows the next interrupt
		<-i.C()
		i.Done()
	}
	machine.Out8(index, statusB)
	machine.Out8(data, b)
	i.Close()
	fmt.Println("interrupted")
}

// enterAll makes all processors enter the kernel repeatedly, without end.
func enterAll() {
	for range runtime.NumCPU() {
		go func() {
			for {
				syscall.RawSyscall(syscall.SYS_GETTID, 0, 0, 0)
			}
		}()
	}
	time.Sleep(time.Hour)
}

// crowd runs more threads than CPUs. They never stop: each wakes another by a system call.
func crowd() {
	for range runtime.NumCPU() {
		c := make(chan bool)
		go func() {
			runtime.LockOSThread()
			for {
				c <- true
			}
		}()
		go func() {
			runtime.LockOSThread()
			for {
				<-c
			}
		}()
	}
}

// spread runs goroutines on all CPUs that wait for one another, during garbage collections. The argument is the number
// of rounds.
func spread() {
	rounds := 200
	if len(os.Args) > 2 {
		rounds, _ = strconv.Atoi(os.Args[2])
	}
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		there, back := make(chan []byte), make(chan []byte)
		wg.Go(func() {
			for b := range there {
				back <- append([]byte(nil), b...)
			}
		})
		wg.Go(func() {
			for i := range rounds {
				there <- make([]byte, i)
				<-back
			}
			close(there)
		})
	}
	runtime.GC()
	wg.Wait()
	how := "spread over"
	if amd64.ReadMSR(amd64.MSRAPICBase)&amd64.APICBaseX2 != 0 {
		how = "spread by x2APIC over"
	}
	fmt.Println(how, runtime.NumCPU())
}

// clock prints whether time advances, and the date.
func clock() {
	a, m := time.Now(), time.Now()
	for time.Since(m) < 5*time.Millisecond {
	}
	b := time.Now()
	fmt.Println(b.After(a), b.Sub(a) < time.Minute, b.Unix())
}

// floats computes in vector registers on threads that are preempted, and checks the results.
func floats() {
	var wg sync.WaitGroup
	var results [4]float64
	for g := range results {
		wg.Go(func() {
			x := float64(g + 1)
			for i := range 1_000_000 {
				x = x*1.0000001 + float64(i&3)*0.5 - 0.25
			}
			results[g] = x
		})
	}
	wg.Wait()
	for g, r := range results {
		x := float64(g + 1)
		for i := range 1_000_000 {
			x = x*1.0000001 + float64(i&3)*0.5 - 0.25
		}
		if x != r {
			fmt.Println("differs", g, x, r)
		}
	}
	fmt.Println("computed on", runtime.NumCPU())
}
