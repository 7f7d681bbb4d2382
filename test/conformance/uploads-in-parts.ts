/** What every way to keep uploads in parts must pass: on one machine, and on two that answer for the same ones. */
import type { Test } from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import type { UploadAnswer } from '../../src/upload/requests/upload-answers.js'
import { eventually } from '../eventually.js'
import { answered, requestOf, type UploadRig } from '../upload/upload-rig.js'

/** Those who answer for the same uploads: the same one twice, or two machines. */
export interface PartTakers {
  readonly one: UploadRig
  readonly other: UploadRig
}

const signer = ed25519Signer(Buffer.alloc(32, 7))
const partBytes = 5_242_880
let items = 0

/** An item of so many bytes, and a few more. */
export function itemOf(bytes = partBytes + 1000): Buffer {
  items += 1
  return Buffer.from(signItem(signer, {}, Buffer.alloc(bytes, `item ${items} `)))
}

const path = '/chunks/{token}/{uploadId}'

export async function begun(rig: UploadRig, from?: string): Promise<string> {
  const request = requestOf('GET', '/chunks/arweave/-1/-1', {
    query: `chunkSize=${partBytes}`,
    ...(from === undefined ? {} : { from }),
  })
  const { status, json } = await answered(rig, '/chunks/{token}/-1/-1', request)
  if (status !== 200) throw new Error(`not begun: ${status}`)
  return (json as { id: string }).id
}

export function sendPart(
  rig: UploadRig,
  uploadId: string,
  offset: number,
  bytes: Buffer,
): Promise<UploadAnswer> {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 65_536) pieces.push(bytes.subarray(at, at + 65_536))
  const request = requestOf('POST', `/chunks/arweave/${uploadId}/${offset}`, {
    headers: { 'content-length': String(bytes.length) },
    pieces,
  })
  return answered(rig, `${path}/{offset}`, request, { uploadId, offset: String(offset) })
}

export function finalize(
  rig: UploadRig,
  uploadId: string,
  word: '-1' | 'finalize' = '-1',
): Promise<UploadAnswer> {
  return answered(rig, `${path}/${word}`, requestOf('POST', `/chunks/arweave/${uploadId}/${word}`), {
    uploadId,
  })
}

export async function stateOf(
  rig: UploadRig,
  uploadId: string,
): Promise<{ status: string; receipt?: object }> {
  const request = requestOf('GET', `/chunks/arweave/${uploadId}/status`)
  return (await answered(rig, `${path}/status`, request, { uploadId })).json as {
    status: string
    receipt?: object
  }
}

async function chunksOf(rig: UploadRig, uploadId: string): Promise<unknown> {
  const request = requestOf('GET', `/chunks/arweave/${uploadId}/-1`)
  const { json, status } = await answered(rig, `${path}/-1`, request, { uploadId })
  return status === 200 ? (json as { chunks: unknown }).chunks : status
}

/** Sends an item, its parts in turn to both. */
export async function sent(
  { one, other }: PartTakers,
  item = itemOf(),
): Promise<{ id: string; item: Buffer }> {
  const id = await begun(one)
  for (let at = 0, turn = 0; at < item.length; at += partBytes, turn += 1) {
    const { status } = await sendPart(turn % 2 === 0 ? other : one, id, at, item.subarray(at, at + partBytes))
    if (status !== 200) throw new Error(`a part: ${status}`)
  }
  return { id, item }
}

function reserved({ one, other }: PartTakers): number {
  const questions = one === other ? one.questions : [...one.questions, ...other.questions]
  return questions.filter((word) => word === 'reserve').length
}

function append(
  rig: UploadRig,
  method: 'POST' | 'PATCH' | 'HEAD' | 'DELETE' | 'GET',
  uploadId: string,
  headers: Readonly<Record<string, string>> = {},
  bytes: Buffer = Buffer.alloc(0),
): Promise<UploadAnswer> {
  const route = method === 'POST' ? '/upload' : '/upload/{uploadId}'
  const request = requestOf(method, `/upload/${uploadId}`, {
    headers: {
      'content-length': String(bytes.length),
      'content-type': 'application/partial-upload',
      ...headers,
    },
    pieces: bytes.length === 0 ? [] : [bytes],
  })
  // A HEAD is answered by the route of GET.
  const posed = method === 'HEAD' ? { ...request, method: 'GET' } : request
  const routes = rig.routes.map((one) => ({
    ...one,
    act: ((given, words, reply) =>
      one.answer(given === posed ? request : given, words, reply)) as typeof one.answer,
  }))
  return answered({ routes }, route, posed, { uploadId })
}

const offsetIn = ({ lines = '' }: UploadAnswer): number =>
  Number(/Upload-Offset: (\d+)/.exec(lines)?.[1] ?? -1)

export async function conformUploadsInParts(t: Test, open: (t: Test) => Promise<PartTakers>): Promise<void> {
  const takers = await open(t)
  const { one, other } = takers

  await t.test('begun by one, continued by the other, ended by both', async (t) => {
    const { id, item } = await sent(takers)
    const both = [
      [0, partBytes],
      [partBytes, item.length - partBytes],
    ]
    t.strictSame(await chunksOf(one, id), both)
    t.strictSame(await chunksOf(other, id), both)
    const before = reserved(takers)
    const answers = await Promise.all([finalize(one, id), finalize(other, id), finalize(one, id)])
    t.strictSame(
      answers.map(({ status }) => status),
      [200, 200, 200],
      JSON.stringify(answers),
    )
    const receipts = new Set(answers.map(({ json }) => JSON.stringify(json)))
    t.equal(receipts.size, 1, 'one receipt')
    t.equal(reserved(takers) - before, 1, 'charged once')
    for (const rig of [one, other]) {
      t.match(await stateOf(rig, id), { status: 'FINALIZED', receipt: answers[0]?.json as object })
      t.strictSame(await finalize(rig, id).then(({ status, json }) => [status, json]), [
        200,
        answers[0]?.json,
      ])
      t.equal((await sendPart(rig, id, 0, item.subarray(0, partBytes))).status, 409, 'no more parts')
    }
    t.equal(one.open.listed(0).open + other.open.listed(0).open, 0)
  })

  await t.test('an end that nobody waits for', async (t) => {
    const { id } = await sent(takers)
    t.equal((await finalize(other, id, 'finalize')).status, 202)
    t.equal((await finalize(one, id, 'finalize')).status < 300, true)
    await eventually('it is finalized', async () => (await stateOf(one, id)).status === 'FINALIZED')
    t.strictSame((await stateOf(one, id)).receipt, (await stateOf(other, id)).receipt)
  })

  await t.test('a part that is sent again replaces the first, wherever that lies', async (t) => {
    const item = itemOf()
    const id = await begun(one)
    t.equal((await sendPart(one, id, 0, Buffer.alloc(partBytes, 'wrong'))).status, 200)
    t.equal((await sendPart(other, id, partBytes, item.subarray(partBytes))).status, 200)
    t.equal((await sendPart(other, id, 0, item.subarray(0, partBytes))).status, 200)
    t.strictSame(await chunksOf(one, id), await chunksOf(other, id))
    t.match(await finalize(one, id), { status: 200 })
  })

  await t.test('parts at the same time', async (t) => {
    const item = itemOf(4 * partBytes)
    const id = await begun(other)
    const offsets = [0, 1, 2, 3, 4].map((number) => number * partBytes)
    const answers = await Promise.all(
      offsets.map((at, turn) =>
        sendPart(turn % 2 === 0 ? one : other, id, at, item.subarray(at, at + partBytes)),
      ),
    )
    t.ok(
      answers.every(({ status }) => status === 200),
      JSON.stringify(answers),
    )
    t.match(await finalize(one, id), { status: 200 })
  })

  await t.test('what is no item is over everywhere, and nothing was charged', async (t) => {
    const before = reserved(takers)
    const id = await begun(one)
    await sendPart(other, id, 0, Buffer.alloc(partBytes, 'no item'))
    t.equal((await finalize(other, id)).status, 400)
    t.match(await stateOf(one, id), { status: 'INVALID' })
    t.equal((await finalize(one, id)).status, 400)
    t.equal(reserved(takers), before)
  })

  await t.test('names that nobody has', async (t) => {
    for (const id of ['none', '%00', '\u0000', 'x'.repeat(100), "'; --"]) {
      t.equal((await finalize(one, id)).status, 404)
      t.equal((await sendPart(other, id, 0, Buffer.from('x'))).status, 404)
      t.equal((await append(other, 'HEAD', id)).status, 404)
    }
  })

  await t.test('a resumable upload goes on at the other', async (t) => {
    const item = itemOf(200_000)
    const begun = await append(one, 'POST', '', { 'upload-complete': '?0' }, item.subarray(0, 50_000))
    t.equal(begun.status, 201)
    const id = /Location: \S*\/upload\/(\S+)/.exec(begun.lines ?? '')?.[1] ?? ''
    t.equal(offsetIn(await append(other, 'HEAD', id)), 50_000)
    const wrong = await append(
      other,
      'PATCH',
      id,
      { 'upload-complete': '?0', 'upload-offset': '7' },
      item.subarray(7),
    )
    t.equal(wrong.status, 409)
    const more = { 'upload-complete': '?0', 'upload-offset': '50000' }
    t.equal((await append(other, 'PATCH', id, more, item.subarray(50_000, 90_000))).status, 204)
    t.equal(offsetIn(await append(one, 'HEAD', id)), 90_000)
    const last = { 'upload-complete': '?1', 'upload-offset': '90000' }
    const answer = await append(one, 'PATCH', id, last, item.subarray(90_000))
    t.equal(answer.status, 200, JSON.stringify(answer))
    const state = await append(other, 'GET', id)
    t.match(state.json, { state: 'finalized', receipt: answer.json })
  })

  await t.test('given up at the other', async (t) => {
    const begun = await append(one, 'POST', '', { 'upload-complete': '?0' }, Buffer.alloc(1000))
    const id = /Location: \S*\/upload\/(\S+)/.exec(begun.lines ?? '')?.[1] ?? ''
    t.equal((await append(other, 'DELETE', id)).status, 204)
    t.equal((await append(one, 'HEAD', id)).status, 404)
    t.equal((await append(one, 'DELETE', id)).status, 404)
  })
}
