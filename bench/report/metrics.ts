/** What the figures of results mean: a short head for tables, and words for readers. Units last in each name. */
export const metricWords: Readonly<Record<string, { head: string; words: string }>> = {
  cpuUs: {
    head: 'CPU us',
    words: 'processor time of the server for a request, us, as many requests as it takes',
  },
  cpuUsPerMb: { head: 'CPU us/MB', words: 'processor time of the server for a megabyte of bodies, us' },
  afterUs: {
    head: 'after us',
    words:
      'processor time for a content from the last answer until nothing is left to do, without what it uses when idle, us',
  },
  proofUs: {
    head: 'proof us',
    words:
      'processor time for a content, while it is read and after, beyond that of the same without verification, us',
  },
  proofsWaiting: {
    head: 'waiting',
    words: 'contents that still wait for a proof then',
  },
  perSecond: { head: 'req/s', words: 'requests a second, as many as it takes' },
  mbPerSecond: { head: 'MB/s', words: 'megabytes of bodies a second, as many requests as it takes' },
  openPerSecond: { head: 'rate', words: 'requests a second that are due at the fixed rate' },
  openP50Us: {
    head: 'p50 us',
    words: 'half of the requests of the fixed rate take no longer, from when they were due',
  },
  openP99Us: { head: 'p99 us', words: '99 of 100 take no longer' },
  openP999Us: { head: 'p99.9 us', words: '999 of 1000 take no longer' },
  openCpuUs: {
    head: 'CPU us at rate',
    words: 'processor time of the server for a request at the fixed rate, us',
  },
  rssMb: { head: 'RSS MB', words: 'resident memory behind the case, files that are mapped included' },
  ownMb: { head: 'own MB', words: 'resident memory that is no file' },
  p50Ms: { head: 'p50 ms', words: 'half of the answers take no longer' },
  p99Ms: { head: 'p99 ms', words: '99 of 100 answers take no longer' },
  rowsEach: { head: 'rows', words: 'rows of an answer' },
  itemsPerSecond: { head: 'items/s', words: 'items a second that are imported meanwhile' },
  probeUs: { head: 'worst us', words: 'the longest time of a small request beside them' },
  grownMb: { head: 'grown MB', words: 'what the own memory grew by meanwhile' },
  slowdown: {
    head: 'p99 to alone',
    words: 'the p99 of hot requests beside others, through their p99 alone',
  },
  lost: {
    head: 'not kept',
    words: 'contents that were answered, and were not there when they were asked for again',
  },
  startMs: { head: 'start ms', words: 'from the start of the program to its line `ready`, after a kill' },
  startCpuMs: { head: 'CPU ms', words: 'processor time until then, ms' },
  ownBytesEach: { head: 'own bytes', words: 'memory that is no file, for each content, bytes' },
  bytesEach: { head: 'bytes', words: 'bytes on disk for each row or content' },
  handshakesPerSecond: {
    head: 'handshakes/s',
    words: 'handshakes a second that the flooding client completes',
  },
  addUs: { head: 'add us', words: 'processor time for a row that is added, us' },
}

/** The head of a column. */
export function headOf(metric: string): string {
  return metricWords[metric]?.head ?? metric
}
