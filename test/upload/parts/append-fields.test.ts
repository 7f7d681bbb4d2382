import t from 'tap'
import { appendFields, appendLines, isTyped } from '../../../src/upload/parts/append-fields.js'
import { fc } from '../../property.js'

function fieldsOf(headers: Readonly<Record<string, string>>) {
  return appendFields({ header: (name) => headers[name] })
}

t.test('fields that are malformed are as if they were not sent', async (t) => {
  const numbers: readonly (readonly [string, number | undefined])[] = [
    ['0', 0],
    ['7', 7],
    [' 7 ', 7],
    ['7;a=b', 7],
    ['999999999999999', 999_999_999_999_999],
    ['9999999999999999', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['1, 1', undefined],
    ['"1"', undefined],
    ['0x10', undefined],
    ['', undefined],
  ]
  for (const [text, value] of numbers) {
    t.equal(fieldsOf({ 'upload-offset': text }).offset, value, `offset ${text}`)
    t.equal(fieldsOf({ 'upload-length': text }).length, value, `length ${text}`)
  }
  const flags: readonly (readonly [string, boolean | undefined])[] = [
    ['?1', true],
    ['?0', false],
    ['?1;a', true],
    ['1', undefined],
    ['true', undefined],
    ['?2', undefined],
    ['?1, ?1', undefined],
  ]
  for (const [text, value] of flags) t.equal(fieldsOf({ 'upload-complete': text }).isLast, value, text)
})

t.test('the first draft that clients follow says the opposite', async (t) => {
  const old = { 'upload-draft-interop-version': '3' }
  t.equal(fieldsOf({ ...old, 'upload-incomplete': '?1' }).isLast, false)
  t.equal(fieldsOf({ ...old, 'upload-incomplete': '?0' }).isLast, true)
  t.equal(fieldsOf({ 'upload-incomplete': '?0' }).isLast, undefined)
  t.match(appendLines({ version: 3 }, { isWhole: true }), /\r\nUpload-Incomplete: \?0/)
  t.match(appendLines({ version: 9 }, { isWhole: true }), /\r\nUpload-Complete: \?1/)
  t.equal(isTyped(fieldsOf(old)), false)
  t.equal(isTyped(fieldsOf({ 'upload-draft-interop-version': '6' })), true)
})

t.test('interim answers are for versions that are known, and for the document to come', async (t) => {
  for (const [version, isInformed] of [
    ['3', true],
    ['9', true],
    ['10', false],
    ['2', false],
    ['x', false],
  ] as const)
    t.equal(fieldsOf({ 'upload-draft-interop-version': version }).isInformed, isInformed, version)
  t.equal(fieldsOf({}).isInformed, true)
})

t.test('whatever stands in the fields, they are read to numbers of bytes and truths', async () => {
  const names = [
    'upload-offset',
    'upload-length',
    'upload-complete',
    'upload-draft-interop-version',
    'content-length',
  ]
  const text = fc.oneof(
    fc.string({ maxLength: 30 }),
    fc.constantFrom('?1', '?0', '0', '5', '5;q', '-0', '1e3', '?1;', '5,', ':AA==:', '(1)', '00', '٣'),
  )
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names.slice(0, 4)), text), (headers) => {
      const { isLast, offset, length, version } = fieldsOf(headers)
      const isNumber = (value: number | undefined): boolean =>
        value === undefined || (Number.isSafeInteger(value) && value >= 0)
      return [offset, length, version].every(isNumber) && [true, false, undefined].includes(isLast)
    }),
  )
})
