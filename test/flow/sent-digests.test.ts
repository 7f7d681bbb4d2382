/** Digests that clients send along (RFC 9530): bytes that do not have them are not taken. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { sentDigests } from '../../src/upload/intake/sent-digests.js'
import { fc, random } from '../property.js'
import { run } from './running.js'

const signer = ed25519Signer(Buffer.alloc(32, 7))
const itemOf = (text: string): Buffer =>
  Buffer.from(signItem(signer, {}, Buffer.alloc(100_000, `${text} ${random()} `)))
const of = (bytes: Uint8Array, name = 'sha-256'): string =>
  `${name}=:${createHash(name.replace('-', '')).update(bytes).digest('base64')}:`

t.test('fields that are malformed are as if they were not sent', async (t) => {
  const value = Buffer.alloc(32, 1).toString('base64')
  t.strictSame(sentDigests(`md5=:AAAA:, sha-256=:${value}:;a=1, sha-512=7`), [
    { algorithm: 'sha-256', value },
  ])
  for (const field of [undefined, '', 'sha-256', 'sha-256=rubbish', ':', `sha-256=:${value}`])
    t.strictSame(sentDigests(field), [])
  fc.assert(fc.property(fc.string(), (field) => Array.isArray(sentDigests(field))))
})

t.test('bytes that are not what the client has hashed do not stay', async (t) => {
  const { urls } = await run(t, t.testdir(), { DEVNET_SEED: 'false', SERVICES: 'upload' })
  const tell = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: Uint8Array,
  ): Promise<{ status: number; headers: Headers; text: string }> => {
    const url = new URL(path, urls.upload)
    const answer = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const begin = async (headers: Record<string, string>, body: Uint8Array): Promise<string> => {
    const created = await tell('POST', '/upload', { 'upload-complete': '?0', ...headers }, body)
    t.equal(created.status, 201, created.text)
    return created.headers.get('location') ?? ''
  }
  const append = (path: string, isLast: boolean, body: Uint8Array, headers: Record<string, string> = {}) =>
    tell(
      'PATCH',
      path,
      {
        'content-type': 'application/partial-upload',
        'upload-offset': '50000',
        'upload-complete': isLast ? '?1' : '?0',
        ...headers,
      },
      body,
    )
  const item = itemOf('digests')
  const [half, rest] = [item.subarray(0, 50_000), item.subarray(50_000)]
  const path = await begin({ 'content-digest': of(half), 'repr-digest': of(item) }, half)
  const changed = Buffer.from(rest)
  changed[1000] = (changed[1000] ?? 0) ^ 1
  for (const name of ['sha-256', 'sha-512']) {
    const created = await append(path, false, changed, { 'content-digest': of(rest, name) })
    t.equal(created.status, 400)
    t.equal(created.headers.get('content-type'), 'application/problem+json')
    t.match(created.text, 'digest-mismatching-values')
    t.equal(created.headers.get('upload-offset'), '50000')
    t.equal((await tell('HEAD', path)).headers.get('upload-offset'), '50000', 'nothing of it stayed')
  }
  const digests = { 'content-digest': `${of(rest)}, ${of(rest, 'sha-512')}, md5=:AAAA:` }
  const taken = await append(path, true, rest, digests)
  t.equal(taken.status, 200, taken.text)
  t.match(JSON.parse(taken.text), { id: /^[\w-]{43}$/ })

  const other = itemOf('another one')
  const wrong = await begin({ 'repr-digest': of(item) }, other.subarray(0, 50_000))
  const created = await append(wrong, true, other.subarray(50_000))
  t.equal(created.status, 400)
  t.match(created.text, 'digest-mismatching-values')
  t.match(JSON.parse((await tell('GET', wrong)).text), { state: 'invalid' })
  for (const field of ['content-digest', 'repr-digest']) {
    const single = await tell('POST', '/tx', { [field]: of(item) }, other)
    t.equal(single.status, 400)
    t.match(single.text, 'digest-mismatching-values')
  }
  t.equal((await tell('POST', '/tx', { 'content-digest': of(other) }, other)).status, 200)
  const malformed = itemOf('malformed')
  t.equal((await tell('POST', '/tx', { 'content-digest': 'sha-256=rubbish' }, malformed)).status, 200)
})
