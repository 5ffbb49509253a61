package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	fs, err := procfs.NewFS(os.Args[1])
	if err != nil {
		panic(err)
	}
	process, err := fs.Proc(1)
	if err != nil {
		panic(err)
	}
	best, cpu := time.Hour, time.Hour
	for range 3 {
		start, before := time.Now(), used()
		if _, err := process.MountStats(); err != nil {
			panic(err)
		}
		best, cpu = min(best, time.Since(start)), min(cpu, used()-before)
	}
	fmt.Println(best.Seconds(), cpu.Seconds())
}
