import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Reaches the private state of Pulsar's objects: what a strategy remembers, and settings by their names. */
final class Fields {
    private Fields() {
    }

    static boolean exists(Object owner, String name) {
        return found(owner.getClass(), name) != null;
    }

    @SuppressWarnings("unchecked")
    static <T> T get(Object owner, String name) throws IllegalAccessException {
        return (T) named(owner.getClass(), name).get(owner);
    }

    static void put(Object owner, String name, Object value) throws IllegalAccessException {
        named(owner.getClass(), name).set(owner, value);
    }

    /** Sets a field to a JSON value, converted to the field's type. */
    static void set(Object owner, String name, JsonNode value) throws IllegalAccessException {
        Field field = named(owner.getClass(), name);
        field.set(owner, converted(value, field.getType()));
    }

    private static Object converted(JsonNode value, Class<?> type) {
        if (type == int.class || type == Integer.class) {
            return value.asInt();
        }
        if (type == long.class || type == Long.class) {
            return value.asLong();
        }
        if (type == double.class || type == Double.class) {
            return Json.number(value);
        }
        if (type == boolean.class || type == Boolean.class) {
            return value.asBoolean();
        }
        if (type == Set.class) {
            return new LinkedHashSet<>(Json.texts(value));
        }
        if (type == List.class) {
            return new ArrayList<>(Json.texts(value));
        }
        return value.asText();
    }

    private static Field named(Class<?> owner, String name) {
        Field field = found(owner, name);
        if (field == null) {
            throw new Absent(owner.getSimpleName() + "." + name);
        }
        return field;
    }

    private static Field found(Class<?> owner, String name) {
        for (Class<?> type = owner; type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        return null;
    }
}
