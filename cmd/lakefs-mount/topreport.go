package main

import (
	"maps"
	"slices"
	"time"

	"github.com/lakefs-mount/lakefs-mount/internal/metrics"
)

// topReport is what a mount did between two looks, and what it holds at the later one.
// Rates are per second.
type topReport struct {
	MountPoint string    `json:"mountpoint"`
	Source     string    `json:"source"`
	Version    string    `json:"version"`
	Time       time.Time `json:"time"`           // of the later look
	Seconds    float64   `json:"seconds"`        // between the looks
	Uptime     float64   `json:"uptime_seconds"` // of the process that serves it

	Read         float64 `json:"read_bytes_per_second"` // by programs, but for the looks
	Written      float64 `json:"written_bytes_per_second"`
	StoreRead    float64 `json:"store_read_bytes_per_second"`
	StoreWritten float64 `json:"store_written_bytes_per_second"`

	Operations      []topKind `json:"operations"`
	StoreRequests   []topKind `json:"store_requests"`
	CatalogRequests []topKind `json:"catalog_requests"`
	Publishes       topKind   `json:"publishes"`
	StoreRetries    float64   `json:"store_retries"` // since the start
	CatalogRetries  float64   `json:"catalog_retries"`

	Cache       topCache  `json:"cache"`
	Memory      topMemory `json:"memory"`
	OpenHandles float64   `json:"open_handles"`
	Staged      float64   `json:"staged_writes"`
	StagedBytes float64   `json:"staged_bytes"`
	Local       float64   `json:"local_files"`
	Jobs        []topJob  `json:"jobs"`
}

// topKind is one kind of operation or request. The times are estimates, in seconds, of
// those between the looks; nil: there were none.
type topKind struct {
	Kind      string   `json:"kind"`
	PerSecond float64  `json:"per_second"`
	P50       *float64 `json:"p50_seconds"`
	P99       *float64 `json:"p99_seconds"`
	Total     float64  `json:"total"`  // since the start
	Failed    float64  `json:"failed"` // of them
	FailedNow float64  `json:"failed_per_second"`
}

// topCache is in bytes and blocks; a ratio is nil where nothing was asked for.
type topCache struct {
	HitRatio      *float64 `json:"hit_ratio"` // between the looks
	HitRatioTotal *float64 `json:"hit_ratio_total"`
	Fetched       float64  `json:"fetched_bytes_per_second"`
	DiskBytes     float64  `json:"disk_bytes"`
	DiskLimit     float64  `json:"disk_limit_bytes"` // 0: there is no disk cache
	DiskHitRatio  *float64 `json:"disk_hit_ratio"`
}

// topMemory is in bytes.
type topMemory struct {
	Budget   float64 `json:"budget_bytes"`
	Limit    float64 `json:"budget_limit_bytes"`
	Cache    float64 `json:"cache_bytes"`
	Heap     float64 `json:"heap_bytes"`
	Resident float64 `json:"resident_bytes"`
}

type topJob struct {
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"` // 0: not known yet
}

// report makes the report of two looks at a mount.
func report(e tableEntry, earlier, later look) topReport {
	between := looks{earlier, later, max(later.at.Sub(earlier.at).Seconds(), 1e-3)}
	last := func(name string) float64 { return later.sum(name, "", "") }
	holder := func(of string) float64 { return later.sum("lakefs_mount_memory_bytes", "holder", of) }
	r := topReport{
		MountPoint: e.path, Source: e.source, Version: later.version(), Time: later.at, Seconds: between.seconds,
		Uptime:          float64(later.at.UnixMilli())/1000 - last("process_start_time_seconds"),
		Read:            max(between.grown("lakefs_mount_file_bytes_total", metrics.DirectionRead)-earlier.cost, 0) / between.seconds,
		Written:         between.rate("lakefs_mount_file_bytes_total", metrics.DirectionWritten),
		StoreRead:       between.rate("lakefs_mount_store_bytes_total", metrics.DirectionRead),
		StoreWritten:    between.rate("lakefs_mount_store_bytes_total", metrics.DirectionWritten),
		Operations:      between.kinds("lakefs_mount_fuse_operation_seconds"),
		StoreRequests:   between.kinds("lakefs_mount_store_request_seconds"),
		CatalogRequests: between.kinds("lakefs_mount_catalog_request_seconds"),
		StoreRetries:    last("lakefs_mount_store_retries_total"), CatalogRetries: last("lakefs_mount_catalog_retries_total"),
		Cache: topCache{
			HitRatio:      between.ratio("lakefs_mount_cache_hits_total", "lakefs_mount_cache_misses_total"),
			HitRatioTotal: ratio(last("lakefs_mount_cache_hits_total"), last("lakefs_mount_cache_misses_total")),
			Fetched:       between.rate("lakefs_mount_cache_fetched_bytes_total", ""),
			DiskBytes:     last("lakefs_mount_disk_cache_bytes"), DiskLimit: last("lakefs_mount_disk_cache_limit_bytes"),
			DiskHitRatio: between.ratio("lakefs_mount_disk_cache_hits_total", "lakefs_mount_disk_cache_misses_total"),
		},
		Memory: topMemory{
			Budget: holder(metrics.HolderBudget), Limit: last("lakefs_mount_memory_limit_bytes"), Cache: holder(metrics.HolderCache),
			Heap: holder(metrics.HolderHeap), Resident: last("process_resident_memory_bytes"),
		},
		OpenHandles: last("lakefs_mount_open_handles"), Staged: last("lakefs_mount_staged_writes"),
		StagedBytes: last("lakefs_mount_staged_bytes"), Local: last("lakefs_mount_local_files"),
		Jobs: []topJob{},
	}
	for _, k := range between.kinds("lakefs_mount_publish_seconds") {
		r.Publishes = k
	}
	r.Publishes.Kind = "publish"
	for _, j := range later.jobs {
		r.Jobs = append(r.Jobs, topJob{Kind: j.Kind, Path: j.Path, Done: j.Done, Total: j.Total})
	}
	return r
}

// looks are two at one mount.
type looks struct {
	earlier, later look
	seconds        float64
}

func (l looks) grown(name, direction string) float64 {
	return l.later.sum(name, "direction", direction) - l.earlier.sum(name, "direction", direction)
}

func (l looks) rate(name, direction string) float64 { return l.grown(name, direction) / l.seconds }

func (l looks) ratio(part, rest string) *float64 { return ratio(l.grown(part, ""), l.grown(rest, "")) }

func ratio(part, rest float64) *float64 {
	if part+rest <= 0 {
		return nil
	}
	of := part / (part + rest)
	return &of
}

// kinds are those of a histogram that happened since the mount started, by name.
func (l looks) kinds(name string) []topKind {
	before, after := l.earlier.distributions(name), l.later.distributions(name)
	kinds := []topKind{}
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		d := after[kind]
		if d.count() == 0 {
			continue
		}
		between := d.since(before[kind])
		k := topKind{
			Kind: kind, PerSecond: between.count() / l.seconds, Total: d.count(), Failed: d.failed,
			FailedNow: between.failed / l.seconds,
		}
		if between.count() > 0 {
			p50, p99 := between.quantile(0.5), between.quantile(0.99)
			k.P50, k.P99 = &p50, &p99
		}
		kinds = append(kinds, k)
	}
	return kinds
}
