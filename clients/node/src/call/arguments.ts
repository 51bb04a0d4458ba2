/** Arguments of the application, checked before anything is sent. Each error names the argument. */

import { ConfigurationError } from '../errors.js'

/** All names of some options. */
export type Names<T> = Readonly<Record<keyof T, true>>

/**
 * Checks that options are an object, and have no other names than these. A misspelt option would otherwise do nothing.
 *
 * @param what - the argument, which errors name; `options` for those of the call itself
 * @param needed - the names that must not be missing
 */
export function known<T extends object>(what: string, options: T, names: Names<T>, needed: readonly (keyof T & string)[] = []): T {
  const of = what === 'options' ? '' : `${what}.`
  const such = () => `{ ${(needed.length > 0 ? needed : Object.keys(names).slice(0, 1)).map((name) => `${name}: …`).join(', ')} }`
  if (options === undefined && needed.length > 0) throw new ConfigurationError(`${what} are missing: ${such()}`)
  if (!isObject(options)) throw new ConfigurationError(`${what} must be an object such as ${such()}, not ${shown(options)}`)
  const wrong = Object.keys(options).find((name) => !Object.hasOwn(names, name))
  if (wrong !== undefined) throw new ConfigurationError(`there is no option '${of}${wrong}'; options are ${Object.keys(names).join(', ')}`)
  const missing = needed.find((name) => options[name] === undefined)
  if (missing !== undefined) throw new ConfigurationError(`${of}${missing} is missing: ${such()}`)
  return options
}

/** Checks that a constructor has its arguments. */
export function checkArguments(name: string, given: number, needed: readonly string[]): void {
  if (given < needed.length) throw new ConfigurationError(`${needed[given]} is missing: new ${name}(${needed.join(', ')})`)
}

/** Checks a function. */
export function checkFunction(name: string, value: unknown): void {
  if (typeof value !== 'function') throw new ConfigurationError(`${name} must be a function, not ${shown(value)}`)
}

/** Checks a boolean, which may be left out. */
export function checkFlag(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    throw new ConfigurationError(`${name} must be true or false, not ${shown(value)}`)
}

/** Checks a list of at least `least`, such as of keys. A text is none, though it has a length. */
export function checkList(name: string, value: unknown, least = 0): void {
  if (!Array.isArray(value)) throw new ConfigurationError(`${name} must be a list, not ${shown(value)}`)
  if (value.length < least) throw new ConfigurationError(`${name} must not be empty`)
}

/** Checks a signal, which may be left out. That of another realm is no instance of this one's class. */
export function checkSignal(value: unknown): void {
  if (value === undefined) return
  if (!isObject(value) || typeof (value as AbortSignal).throwIfAborted !== 'function')
    throw new ConfigurationError(`signal must be an AbortSignal, not ${shown(value)}`)
}

/** A value as an error shows it: the beginning of a text, and nothing of a URL, which may have a password. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value.includes('://') ? 'a URL' : `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'a list'
  if (!isObject(value)) return String(value)
  const name = value.constructor?.name || 'Object'
  return name === 'Object' ? 'an object' : `an object of the class ${name}`
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
