/** What nodes of the distributed hash table send, mangled. */
import { ok } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Walk } from '../../src/torrent/dht-walk.js'
import {
  type DhtAnswer,
  type DhtContact,
  decodeDhtAnswer,
  decodeDhtQuestion,
  encodeAnnouncePeer,
  encodeDhtAnswer,
  encodeDhtError,
  encodeGetPeers,
} from '../../src/torrent/krpc.js'
import { fc } from '../property.js'
import { fuzz } from './fuzz.js'
import { mutated } from './mutate.js'

const id = randomBytes(20)
const transaction = Buffer.from('tt')
const contacts = [
  { id, host: '192.0.2.1', port: 6881 },
  { id: randomBytes(20), host: '192.0.2.2', port: 1 },
]
const peers = [{ host: '198.51.100.1', port: 7001 }]
const answers: readonly DhtAnswer[] = [
  { transaction, id, token: Buffer.from('token'), contacts, peers },
  { transaction, id, token: undefined, contacts: [], peers },
  { transaction, id, token: undefined, contacts: [{ id, host: '2001:db8:0:0:0:0:0:1', port: 5 }], peers: [] },
]
const messages = [
  ...answers.map(encodeDhtAnswer),
  encodeGetPeers(transaction, id, randomBytes(20)),
  encodeAnnouncePeer(transaction, id, randomBytes(20), 6881, Buffer.from('token')),
  encodeDhtError(transaction, 203, 'no'),
]

fuzz('messages of the DHT', mutated(messages), (bytes) => {
  for (const isV6 of [false, true]) {
    const answer = decodeDhtAnswer(Buffer.from(bytes), isV6)
    if (answer === undefined) continue
    ok(answer.id.length === 20 && answer.contacts.length <= 16 && answer.peers.length <= 100)
    for (const { port } of [...answer.contacts, ...answer.peers]) ok(port > 0 && port < 65536)
    decodeDhtAnswer(encodeDhtAnswer(answer), isV6)
  }
  const question = decodeDhtQuestion(Buffer.from(bytes))
  return question?.target
})

fuzz('answers come back as they were', fc.constantFrom(...answers.entries()), ([index, answer]) => {
  const read = decodeDhtAnswer(encodeDhtAnswer(answer), index === 2)
  ok(read !== undefined && read.token?.toString() === answer.token?.toString())
  ok(JSON.stringify([read.contacts, read.peers]) === JSON.stringify([answer.contacts, answer.peers]))
})

const contact: fc.Arbitrary<DhtContact> = fc
  .tuple(fc.uint8Array({ minLength: 20, maxLength: 20 }), fc.integer({ min: 1, max: 300 }))
  .map(([bytes, port]) => ({ id: Buffer.from(bytes), host: '127.0.0.1', port }))

fuzz(
  'a walk ends, asks nobody twice, and tells the nearest of those that answered',
  fc.tuple(
    fc.array(fc.array(contact, { maxLength: 16 }), { minLength: 1, maxLength: 30 }),
    fc.array(fc.boolean()),
  ),
  ([tells, moods]) => {
    const target = Buffer.alloc(20, 0x55)
    const walk = new Walk(target, id, true)
    walk.add(tells[0] ?? [])
    const visited = new Set<number>()
    const answered: string[] = []
    for (let count = 0; ; count += 1) {
      const next = walk.next()
      if (next === undefined) break
      ok(!visited.has(next.port) && count < 120)
      visited.add(next.port)
      if (moods[count] === false) walk.silent(next)
      else {
        walk.add(tells[count % tells.length] ?? [])
        walk.answered(next, Buffer.from('token'))
        answered.push(Buffer.from(next.id.map((byte, at) => byte ^ target[at]!)).toString('hex'))
      }
    }
    const nearest = walk.nearest().map(({ contact }) => {
      return Buffer.from(contact.id.map((byte, at) => byte ^ target[at]!)).toString('hex')
    })
    ok(JSON.stringify(nearest) === JSON.stringify(answered.sort().slice(0, 8)))
  },
)
