import { open, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { request } from 'undici'
import type { Clock } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { bytesPerSecondMin, paced } from '../http/sender-pace.js'
import { isMissing } from '../store/blobs.js'
import type { HttpOptions } from './follow.js'
import type { BandFile } from './publication.js'

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if (isMissing(error)) return 0
    throw error
  }
}

/**
 * Brings a band's files over HTTP, one after the other, for bands without a torrent. Bytes that are on disk already
 * are not fetched again; the caller checks the digests. Resolves with a refusal where the server fails or is too
 * slow; rejects where writing fails.
 */
export async function fetchFiles(
  base: string,
  files: readonly BandFile[],
  folder: string,
  asking: HttpOptions,
  clock: Clock,
  end: AbortSignal,
): Promise<Refusal | undefined> {
  for (const file of files) {
    const refusal = await fetchFile(`${base}${file.name}`, file, join(folder, file.name), asking, clock, end)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

async function fetchFile(
  url: string,
  { size }: BandFile,
  path: string,
  { dispatcher, timeoutMs, userAgent }: HttpOptions,
  clock: Clock,
  end: AbortSignal,
): Promise<Refusal | undefined> {
  let had = await sizeOf(path)
  if (had > size) {
    await unlink(path)
    had = 0
  }
  const file = await open(path, 'a', 0o600)
  try {
    if (had === size) return undefined
    const headers = { 'user-agent': userAgent, range: `bytes=${had}-${size - 1}` }
    // No timeout for the body, because its rate is checked below.
    const timeouts = { headersTimeout: timeoutMs, bodyTimeout: 0 }
    const answer = await request(url, { dispatcher, signal: end, headers, ...timeouts })
    const fits = answer.statusCode === 206 || (answer.statusCode === 200 && had === 0)
    if (!fits) {
      answer.body.on('error', () => 'dropped on purpose').destroy()
      return refuse('upstream', 'upstream', `${url}: status ${answer.statusCode}`)
    }
    const body = answer.body as AsyncIterable<Buffer>
    const stop = (): void => void answer.body.on('error', () => 'dropped on purpose').destroy()
    const pace = { stallMs: timeoutMs, bytesPerSecondMin }
    for await (const part of paced(body, url, pace, clock, stop)) {
      if (isRefusal(part)) return part
      had += part.length
      if (had > size) return refuse('forged', 'upstream', `${url}: more than ${size} bytes`)
      await file.write(part)
    }
    return had === size ? undefined : refuse('upstream', 'upstream', `${url}: ${had} of ${size} bytes`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === 'write') throw error
    return refuse('upstream', 'upstream', `${url}: ${expected(error).message}`)
  } finally {
    await file.close()
  }
}
