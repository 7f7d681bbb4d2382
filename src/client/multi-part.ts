import { type ChunkingOptions, chunkBytesMax, chunkBytesMin } from './chunking.js'
import { ClientError } from './errors.js'
import type { Payer } from './paid-request.js'
import { partMemory, partsOf } from './parts.js'
import { type PreparedItem, placeKey } from './prepare.js'
import type { ResumeStore } from './resume-store.js'
import { fieldsOfAnswer, type RemoteService } from './service.js'
import type { Emit } from './task.js'
import { nowMs, waited } from './timing.js'

/**
 * Bytes of parts in memory, at most, where a part is not longer than that: those on their way, and one that is being read. What
 * sends them (`fetch`) may hold as much again.
 */
const partBytesMax = 64 * 1024 * 1024

/** Smaller parts are not sent, whatever the service wants. */
const chunkSizeMin = 64 * 1024

/** An upload that was begun, as the resume store has it. */
interface Begun {
  readonly uploadId: string
  readonly chunkSize: number
}

export interface PartsUpload {
  readonly service: RemoteService
  readonly store: ResumeStore
  readonly item: PreparedItem
  readonly token: string
  readonly options: ChunkingOptions
  readonly paidBy: readonly string[]
  readonly payer: Payer | undefined
  readonly signal: AbortSignal | undefined
  readonly emit: Emit
}

const version = { 'x-chunking-version': '2' }

/** Uploads an item in parts: those that the service has already are not sent again. Resolves with the receipt's JSON. */
export async function uploadInParts(upload: PartsUpload): Promise<Readonly<Record<string, unknown>>> {
  const { begun, present } = await beginOrResume(upload)
  await sendParts(upload, begun, present)
  return finalize(upload, begun)
}

async function beginOrResume(upload: PartsUpload): Promise<{ begun: Begun; present: ReadonlySet<number> }> {
  const { store, item, service, token, signal } = upload
  const key = placeKey(item.resumeKey, 'parts', service.url)
  const text = await store.get(key)
  if (text !== undefined) {
    const begun = JSON.parse(text) as Begun
    const path = `/v1/chunks/${token}/${begun.uploadId}/-1`
    const answer = await service.ask({ path, headers: version, signal, accepted: [200, 404] })
    if (answer.status === 200) return { begun, present: offsetsOf(answer.json) }
    // What is put together already has no parts any more, but a status.
    const state = await service.ask({
      path: `/v1/chunks/${token}/${begun.uploadId}/status`,
      signal,
      accepted: [200, 404],
    })
    if (state.status === 200) return { begun, present: allOffsets(item.source.size, begun.chunkSize) }
    await store.delete(key)
  }
  const begun = await create(upload)
  await store.set(key, JSON.stringify(begun))
  return { begun, present: new Set() }
}

/** Offsets of parts in a service's answer: `{ chunks: [[offset, size], …] }`. What is no such list has none. */
function offsetsOf(json: unknown): Set<number> {
  const { chunks } = (json ?? {}) as { chunks?: unknown }
  const list: unknown[] = Array.isArray(chunks) ? chunks : []
  return new Set(
    list.flatMap((part) => (Array.isArray(part) && typeof part[0] === 'number' ? [part[0]] : [])),
  )
}

function allOffsets(size: number, chunkSize: number): Set<number> {
  return new Set(Array.from({ length: Math.ceil(size / chunkSize) }, (_, index) => index * chunkSize))
}

async function create({ service, token, options, payer, item, signal }: PartsUpload): Promise<Begun> {
  const wanted = options.chunkByteCount ?? chunkBytesMin
  // No more than 10,000 parts are taken.
  const chunkSize = Math.max(wanted, Math.ceil(item.source.size / 10_000))
  const base = `/v1/chunks/${token}/-1/-1?chunkSize=${chunkSize}`
  const { signatureType } = item.header
  const paid = `&totalBytes=${item.source.size}&address=${payer?.signer.address}&signatureType=${signatureType}`
  const headers = payer === undefined ? version : { ...version, 'cache-control': 'no-store' }
  const request = { path: payer === undefined ? base : base + paid, headers, signal }
  const answer =
    payer === undefined
      ? await service.ask(request)
      : await (await import('./paid-request.js')).askPaid(
          service,
          request,
          placeKey(item.resumeKey, 'payment', service.url),
          payer,
        )
  const { id, chunkSize: statedSize } = fieldsOfAnswer(answer, 'the beginning of an upload')
  if (typeof id !== 'string' || !/^[\w.~-]{1,256}$/.test(id))
    throw new ClientError(
      'malformed-answer',
      'the service gave the upload no id',
      'check the address of the service',
    )
  if (statedSize === undefined) return { uploadId: id, chunkSize }
  // A service may want other parts, but none that are held in memory by the gigabyte, or sent by the million.
  const isUsable =
    Number.isInteger(statedSize) && Number(statedSize) >= chunkSizeMin && Number(statedSize) <= chunkBytesMax
  if (isUsable) return { uploadId: id, chunkSize: Number(statedSize) }
  const found = `the service wants parts of ${String(statedSize)} bytes`
  throw new ClientError('malformed-answer', found, 'check the address of the service')
}

/** Sends what is missing, as many parts at once as go well: one more after each success, half after a refusal. */
async function sendParts(upload: PartsUpload, begun: Begun, present: ReadonlySet<number>): Promise<void> {
  const { item, service, token, options, signal, emit } = upload
  const most = options.maxChunkConcurrency ?? 5
  let allowed = Math.min(2, most)
  let sent = 0
  const failed: unknown[] = []
  const running = new Set<Promise<void>>()
  const { chunkSize } = begun
  const memory = partMemory(chunkSize, Math.min(most + 1, Math.max(1, Math.floor(partBytesMax / chunkSize))))
  const send = async (offset: number, part: Uint8Array<ArrayBuffer>): Promise<void> => {
    const path = `/v1/chunks/${token}/${begun.uploadId}/${offset}`
    const headers = { ...version, 'content-type': 'application/octet-stream' }
    for (let tried = 0; ; tried++) {
      try {
        await service.ask({ method: 'POST', path, headers, body: part, signal })
        break
      } catch (error) {
        const isBusy = error instanceof ClientError && ['rate-limited', 'unavailable'].includes(error.code)
        if (!isBusy || tried >= 2) throw error
        allowed = Math.max(1, Math.floor(allowed / 2))
      }
    }
    allowed = Math.min(most, allowed + 1)
    sent += part.length
    emit({ type: 'upload', processedBytes: sent, totalBytes: item.source.size })
  }
  let offset = 0
  try {
    for await (const part of partsOf(item.source.open(0), chunkSize, memory)) {
      const at = offset
      offset += part.length
      if (present.has(at)) {
        sent += part.length
        memory.giveBack(part)
        continue
      }
      while (running.size >= allowed && failed.length === 0) await Promise.race(running)
      if (failed.length > 0) break
      const work: Promise<void> = send(at, part)
        .catch((error: unknown) => void failed.push(error))
        .finally(() => {
          running.delete(work)
          memory.giveBack(part)
        })
      running.add(work)
    }
  } finally {
    await Promise.all(running)
  }
  if (failed.length > 0) throw failed[0]
}

const failedStates: Readonly<Record<string, readonly ['insufficient-credits' | 'rejected', string]>> = {
  UNDERFUNDED: ['insufficient-credits', 'top up and upload again: parts are kept for a day'],
  INVALID: ['rejected', 'the item did not verify at the service: upload again'],
  APPROVAL_FAILED: ['rejected', 'check the amount and the address of the approval'],
  REVOKE_FAILED: ['rejected', 'check whether there is an approval to revoke'],
}

async function finalize(upload: PartsUpload, begun: Begun): Promise<Readonly<Record<string, unknown>>> {
  const { service, token, paidBy, options, item, signal } = upload
  const path = `/v1/chunks/${token}/${begun.uploadId}`
  const headers = {
    ...version,
    'content-type': 'application/octet-stream',
    ...(paidBy.length > 0 ? { 'x-paid-by': paidBy.join(',') } : {}),
  }
  const accepted = [200, 201, 202]
  const answer = await service.ask({ method: 'POST', path: `${path}/finalize`, headers, signal, accepted })
  if (answer.status === 200 && isReceipt(answer.json)) return answer.json
  const size = item.source.size
  const limitMs = options.maxFinalizeMs ?? Math.max(1, Math.ceil(size / 2 ** 30)) * 60_000
  const pollMs = size < 100 * 2 ** 20 ? 500 : 2000
  for (const untilMs = nowMs() + limitMs; ; ) {
    const state = fieldsOfAnswer(
      await service.ask({ path: `${path}/status`, headers: version, signal }),
      'the state',
    )
    if (state.status === 'FINALIZED' && isReceipt(state.receipt)) return state.receipt
    const failure = failedStates[String(state.status)]
    if (failure !== undefined) {
      await upload.store.delete(placeKey(item.resumeKey, 'parts', upload.service.url))
      throw new ClientError(failure[0], `the service says ${state.status}`, failure[1], {
        id: item.header.id,
      })
    }
    if (nowMs() > untilMs) {
      const advice = 'call again: it goes on where it is, nothing is sent or paid twice'
      throw new ClientError('unavailable', `still ${state.status} after ${limitMs} ms`, advice, {
        id: item.header.id,
      })
    }
    await waited(pollMs, signal)
  }
}

function isReceipt(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && 'signature' in value
}
