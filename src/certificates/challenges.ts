import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../actor/clock.js'
import { makeFolder } from '../store/folder.js'
import { openRegular } from '../store/regular-file.js'
import { removeDrafts, replaceSecret } from '../store/secret-file.js'

/** Path of the answers of http-01 challenges (RFC 8555 section 8.3). */
export const challengePath = '/.well-known/acme-challenge/'

/** A token is base64url (RFC 8555 section 8.3), which also keeps it within its folder. */
const tokenShape = /^[A-Za-z0-9_-]{16,256}$/

const answerMaxBytes = 1024
/** Longer than any server takes to look at an answer. */
const keptMs = 86_400_000

/**
 * Answers of http-01 challenges, one file for each token. Files, because any process of this machine may write them and every
 * thread that listens can read them: this program, `sluice tls renew`, or another ACME client.
 */
export class Challenges {
  constructor(private readonly folder: string) {}

  /** Throws the system's error. */
  put(token: string, answer: string): void {
    if (!tokenShape.test(token))
      throw new Error('the token of the challenge has another form than RFC 8555 says')
    makeFolder(this.folder)
    replaceSecret(join(this.folder, token), answer)
  }

  /** Throws the system's error. */
  remove(token: string): void {
    if (tokenShape.test(token)) rmSync(join(this.folder, token), { force: true })
  }

  /** Removes what killed processes left. Other programs may have challenges of their own here. Throws the system's error. */
  clear(): void {
    removeDrafts(this.folder)
    if (!existsSync(this.folder)) return
    for (const name of readdirSync(this.folder)) {
      const path = join(this.folder, name)
      const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: systemClock.now() }
      if (systemClock.now() - mtimeMs > keptMs) rmSync(path, { force: true, recursive: true })
    }
  }

  /** Undefined where no such challenge is open. Rejects with the system's error. */
  async answer(token: string): Promise<string | undefined> {
    if (!tokenShape.test(token)) return undefined
    try {
      const file = await openRegular(join(this.folder, token))
      if (file === undefined) return undefined
      try {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(answerMaxBytes), 0, answerMaxBytes, 0)
        return buffer.toString('latin1', 0, bytesRead)
      } finally {
        await file.close()
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }
}
