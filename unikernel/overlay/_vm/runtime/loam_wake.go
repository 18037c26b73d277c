package runtime

// loamAlarmClock is the clock of the threads' alarms (loam_deferred.go): the thread's CPU time. An alarm then
// never wakes a CPU that has become idle.
const loamAlarmClock = _CLOCK_THREAD_CPUTIME_ID

// loamDefers disables, on this platform, the deferred wakes of loam_deferred.go. In a virtual machine the kernel
// delays the thread instead, because the kernel sees what all CPUs do. One kind of wake is deferred: see loam_poller.go.
const loamDefers = false

// loamPatience is the delay of the alarm, in nanoseconds. Here the alarm only replaces the runtime's
// monitor, which lets a goroutine run for the same time.
const loamPatience = 10e6
