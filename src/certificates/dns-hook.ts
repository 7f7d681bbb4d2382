import { execFile } from 'node:child_process'

/** A DNS provider takes up to minutes until its servers answer with a new record. */
const hookMs = 300_000

/**
 * Calls the operator's program for TXT records of dns-01 challenges (RFC 8555 section 8.4): `PROGRAM add|remove NAME VALUE`.
 * `add` must return only after the record can be queried, and must not replace other records of the same name: a host and its
 * wildcard have the same one. Calls are made one after another. Rejects with what the program wrote where it fails or takes
 * longer than 5 minutes.
 */
export class DnsHook {
  #last: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly program: string,
    private readonly timeoutMs = hookMs,
  ) {}

  call(action: 'add' | 'remove', name: string, value: string): Promise<void> {
    const call = this.#last.then(() => this.#run([action, name, value]))
    this.#last = call.catch(() => undefined)
    return call
  }

  #run(words: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const limits = { timeout: this.timeoutMs, killSignal: 'SIGKILL', maxBuffer: 65_536 } as const
      execFile(this.program, words, limits, (error, stdout, stderr) => {
        if (error === null) return resolve()
        const written = `${stdout}${stderr}`.trim().slice(-500)
        const how = error.killed === true ? `did not end within ${this.timeoutMs / 1000} s` : error.message
        const [action, name] = words
        reject(new Error(`TLS_DNS_HOOK ${action} ${name}: ${how}${written === '' ? '' : `: ${written}`}`))
      })
    })
  }
}
