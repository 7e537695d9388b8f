package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Outcomes of an operation, a request or a publish. OutcomeOK is success;
// OutcomeRefused an answer that a rule or the caller's input asks for (ENOENT,
// EEXIST, EROFS, ESTALE…), OutcomeCanceled an interrupted one, OutcomeError a
// failure (EIO and the like).
const (
	OutcomeOK       = "ok"
	OutcomeRefused  = "refused"
	OutcomeCanceled = "canceled"
	OutcomeError    = "error"
)

// Directions of Set.FileBytes and Set.StoreBytes.
const (
	DirectionRead    = "read"
	DirectionWritten = "written"
)

// Holders of Set.Memory: the budget that cached and staged bytes share, what of it
// the cache has, and the Go heap as a whole.
const (
	HolderBudget = "budget"
	HolderCache  = "cache"
	HolderHeap   = "heap"
)

// Build says what the program was built from.
type Build struct{ Version, Revision, Go string }

// Set is every metric of a mount, by name. All fields are filled by NewSet and are
// not to be replaced; the embedded Registry gathers them. Histograms are of seconds.
type Set struct {
	*prometheus.Registry

	// fs
	Operations  *Family[prometheus.Observer] // operation (FUSE's, in lower case), outcome
	FileBytes   *Family[*Counter]            // direction
	OpenHandles prometheus.Gauge
	Redirects   *Counter // opens answered by ESTALE for the kernel to look up again

	// objectstore, fed at the edge by whoever wraps the store
	StoreRequests *Family[prometheus.Observer] // operation, outcome
	StoreBytes    *Family[*Counter]            // direction
	StoreSent     *Counter                     // bytes of requests, as they go out
	StoreRetries  *Counter

	// cache: bound to cache.Stats
	CacheHits, CacheMisses, CacheFetches, CacheFetchedBytes, CacheUncached *Func

	// fs: files of a directory that were fetched before they were opened
	PrefetchedFiles, PrefetchedBytes, PrefetchedUsed *Counter

	// disk cache: bound to cache.Disk's Stats; 0 without one
	DiskHits, DiskMisses, DiskCorrupt, DiskWritten, DiskDropped, DiskEvicted *Func
	DiskBytes, DiskLimit                                                     *Func

	// memory: bound to who holds it
	Memory      *Family[*Func] // holder
	MemoryLimit *Func

	// catalogview, fed by the catalog's own service
	CatalogRequests *Family[prometheus.Observer] // operation (Glue's, as its API has it), outcome
	CatalogRetries  *Counter

	// commit and staging
	Publishes                 *Family[prometheus.Observer] // outcome
	StagedWrites, StagedBytes *Func
	LocalFiles, LocalBytes    *Func
}

// NewSet makes the metrics of one mount, all zero, and those of the process.
func NewSet(b Build) *Set {
	s := &Set{Registry: prometheus.NewPedanticRegistry()}
	s.addFS()
	s.addStore()
	s.addCatalog()
	s.addCache()
	s.addMemory()
	s.addPublish()
	built := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "lakefs_mount_build_info", Help: "What the program was built from; 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	built.Set(1)
	s.MustRegister(built, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

func outcomes() Label {
	return Label{"outcome", []string{OutcomeOK, OutcomeRefused, OutcomeCanceled, OutcomeError}}
}

func directions() Label {
	return Label{"direction", []string{DirectionRead, DirectionWritten}}
}

func (s *Set) addFS() {
	operation := Label{"operation", []string{
		"lookup", "getattr", "setattr", "readdir", "open", "create", "read", "write", "copy_file_range", "flush", "fsync",
		"release", "rename", "unlink", "mkdir", "rmdir", Other,
	}}
	s.Operations = s.histograms("lakefs_mount_fuse_operation_seconds",
		"Time from a FUSE request to its answer, by operation and outcome.", operation, outcomes())
	s.FileBytes = s.counters("lakefs_mount_file_bytes_total",
		"Bytes that programs read and wrote; what the kernel answers from its page cache is not seen.", directions())
	s.OpenHandles = prometheus.NewGauge(prometheus.GaugeOpts{Name: "lakefs_mount_open_handles", Help: "Open file handles."})
	s.MustRegister(s.OpenHandles)
	s.Redirects = s.counter("lakefs_mount_open_redirects_total",
		"Opens sent back to look up the newest version.")
	s.PrefetchedFiles = s.counter("lakefs_mount_prefetched_files_total",
		"Files asked for before they were opened, in a directory that is being read in order.")
	s.PrefetchedBytes = s.counter("lakefs_mount_prefetched_bytes_total", "Bytes of the files asked for before they were opened.")
	s.PrefetchedUsed = s.counter("lakefs_mount_prefetched_used_total", "Files asked for before they were opened that were opened then.")
}

func (s *Set) addStore() {
	operation := Label{"operation", []string{
		"stat", "list", "read", "put", "copy", "delete", "open", "adopt", "return", "rename",
		"make_directory", "rename_directory", "upload", "part", "complete", "abort", Other,
	}}
	s.StoreRequests = s.histograms("lakefs_mount_store_request_seconds",
		"Time from a request to the object store to its answer (of a read: to its headers), by operation and outcome.", operation, outcomes())
	s.StoreBytes = s.counters("lakefs_mount_store_bytes_total",
		"Bytes of objects read from and written to the store.", directions())
	s.StoreSent = s.counter("lakefs_mount_store_sent_bytes_total",
		"Bytes of requests to the object store as they go out, retries included.")
	s.StoreRetries = s.counter("lakefs_mount_store_retries_total", "Requests to the object store asked again.")
}

func (s *Set) addCatalog() {
	operation := Label{"operation", []string{
		"GetDatabases", "GetDatabase", "GetTables", "GetTable", "GetPartitions", "GetPartition", "BatchCreatePartition",
		"UpdatePartition", "DeletePartition", "CreateTable", "UpdateTable", "DeleteTable", Other,
	}}
	s.CatalogRequests = s.histograms("lakefs_mount_catalog_request_seconds",
		"Time from a request to the catalog service to its answer, by operation and outcome.", operation, outcomes())
	s.CatalogRetries = s.counter("lakefs_mount_catalog_retries_total", "Requests to the catalog service asked again.")
}

func (s *Set) addCache() {
	s.CacheHits = s.counterFunc("lakefs_mount_cache_hits_total",
		"Blocks read that were in the cache or on their way into it.")
	s.CacheMisses = s.counterFunc("lakefs_mount_cache_misses_total", "Blocks read that had to be fetched.")
	s.CacheFetches = s.counterFunc("lakefs_mount_cache_fetches_total", "Ranges fetched, read-ahead included.")
	s.CacheFetchedBytes = s.counterFunc("lakefs_mount_cache_fetched_bytes_total", "Bytes fetched.")
	s.CacheUncached = s.counterFunc("lakefs_mount_cache_uncached_total",
		"Reads past the cache because the memory budget was exhausted.")
	s.DiskHits = s.counterFunc("lakefs_mount_disk_cache_hits_total", "Blocks served from the disk cache.")
	s.DiskMisses = s.counterFunc("lakefs_mount_disk_cache_misses_total", "Blocks that were not in the disk cache, and asked of the store.")
	s.DiskCorrupt = s.counterFunc("lakefs_mount_disk_cache_corrupt_total", "Blocks of the disk cache found damaged, and removed.")
	s.DiskWritten = s.counterFunc("lakefs_mount_disk_cache_written_total", "Blocks written to the disk cache.")
	s.DiskDropped = s.counterFunc("lakefs_mount_disk_cache_dropped_total",
		"Blocks not written to the disk cache: no memory for them, or the disk was behind or failed.")
	s.DiskEvicted = s.counterFunc("lakefs_mount_disk_cache_evicted_total", "Blocks removed from the disk cache for others.")
	s.DiskBytes = s.gaugeFunc("lakefs_mount_disk_cache_bytes", "What the disk cache takes of its disk.")
	s.DiskLimit = s.gaugeFunc("lakefs_mount_disk_cache_limit_bytes", "What the disk cache may take of its disk.")
}

func (s *Set) addMemory() {
	s.Memory = s.gaugeFuncs("lakefs_mount_memory_bytes",
		"Memory in use, by holder: of the budget, of it in the cache, the Go heap.",
		Label{"holder", []string{HolderBudget, HolderCache, HolderHeap}})
	s.MemoryLimit = s.gaugeFunc("lakefs_mount_memory_limit_bytes", "The memory budget.")
}

func (s *Set) addPublish() {
	s.Publishes = s.histograms("lakefs_mount_publish_seconds", "Time of a publish of a file, by outcome.",
		Label{"outcome", []string{OutcomeOK, OutcomeRefused, OutcomeError}})
	s.StagedWrites = s.gaugeFunc("lakefs_mount_staged_writes", "Files that wait in the staging directory; not those of the mount alone.")
	s.StagedBytes = s.gaugeFunc("lakefs_mount_staged_bytes", "Bytes of files that wait in the staging directory.")
	s.LocalFiles = s.gaugeFunc("lakefs_mount_local_files", "Files that live in the mount alone, and wait for nobody.")
	s.LocalBytes = s.gaugeFunc("lakefs_mount_local_bytes", "Bytes of files that live in the mount alone.")
}
