import t from 'tap'
import { Clients } from '../../src/admission/clients.js'
import { Hosts } from '../../src/names/host.js'
import { targetOf } from '../../src/routes/content-handler.js'
import { memoryBytes } from '../memory-bytes.js'
import { someId } from '../source/rig.js'

const count = 2000
const long = 'a'.repeat(15_000)

/** Bytes that each of `count` results of `make` keeps in memory. */
function bytesKept(make: (turn: number) => unknown): number {
  const before = memoryBytes()
  const kept = Array.from({ length: count }, (_, turn) => make(turn))
  const after = memoryBytes()
  return kept.length === 0 ? 0 : (after - before) / count
}

// A buffer gives each text memory of its own, as a head of a request has.
const received = (text: string): string => Buffer.from(text, 'latin1').toString('latin1')

t.test('the id of a long path does not keep the path', (t) => {
  for (const path of ['/ID/', '/tx/ID/data.', '/raw/ID/']) {
    const bytes = bytesKept(() => targetOf(received(path.replace('ID', someId()) + long))?.id ?? path)
    t.ok(bytes < 1000, `${path}: ${bytes} bytes`)
  }
  t.end()
})

t.test('the name of a long host does not keep the host', (t) => {
  const hosts = new Hosts(['gateway.example'])
  const bytes = bytesKept((turn) => {
    const { name } = hosts.place(received(`a-name-of-a-stranger-${turn}.${long}.gateway.example`))
    return name
  })
  t.ok(bytes < 1000, `${bytes} bytes`)
  t.end()
})

t.test('an address of a long header does not keep the header', (t) => {
  const options = { trustedProxies: ['127.0.0.1'], exempt: [], ipv6PrefixBits: 64 }
  const clients = new Clients(options, { low: 1, high: 2 })
  const bytes = bytesKept((turn) => {
    const address = `2001:db8:${turn.toString(16)}:1:2:3:4:5`
    const lines = received(`${'10.0.0.1, '.repeat(1500)}${address}`)
    return clients.of({
      remoteAddress: '127.0.0.1',
      header: (name) => (name === 'x-forwarded-for' ? lines : undefined),
    })
  })
  t.ok(bytes < 3000, `${bytes} bytes`)
  t.end()
})
