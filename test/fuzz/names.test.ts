import { Hosts } from '../../src/names/host.js'
import { parseName } from '../../src/names/name.js'
import { readRecord } from '../../src/names/name-record.js'
import { fc } from '../property.js'
import { someId } from '../source/rig.js'
import { fuzz } from './fuzz.js'

const marks = fc.constantFrom(
  '.',
  '_',
  '-',
  ':',
  '[',
  ']',
  '%',
  '*',
  '@',
  'a',
  'A',
  '\0',
  '\u0130',
  '127.0.0.1',
  'www',
  '443',
)
const labels = fc
  .array(fc.oneof(marks, fc.string({ maxLength: 60 })), { maxLength: 8 })
  .map((parts) => parts.join(''))
const hosts = new Hosts(['gw.example', 'deep.gw.example', 'localhost'])

fuzz(
  'host',
  fc
    .tuple(labels, fc.constantFrom('', '.gw.example', '.deep.gw.example', '.localhost.', '.GW.EXAMPLE:80'))
    .map((parts) => parts.join('')),
  (host) => {
    const { name } = hosts.place(host)
    return name === 'malformed' ? undefined : name
  },
)

fuzz('name', labels, parseName)

const value = fc.oneof(
  fc.constantFrom(someId(), '', '900', '-1', '1e9', 'x\r\ny: z', null, 7, -7, 1.5, 2 ** 60),
  fc.string(),
  fc.anything(),
)
fuzz(
  'name record',
  fc.record(
    {
      id: fc.oneof(fc.constant(someId()), value),
      ttlSeconds: value,
      antId: value,
      antProgramId: value,
      undernameLimit: value,
      recordIndex: value,
    },
    { requiredKeys: [] },
  ),
  (raw) => {
    const record = readRecord(raw)
    // Whatever is read may be sent on as header values.
    if (record !== undefined && /[^\w: ,".{}-]/.test(JSON.stringify(record)))
      throw new Error(JSON.stringify(record))
    return record
  },
)
