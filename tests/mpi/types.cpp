// Derived types: scattered here, scattered otherwise or whole there.
#include <algorithm>
#include <cstddef>

#include "scene.hpp"

namespace mpi_test {

namespace {

struct Mixed {
    char letter;
    double number;
    short small[3];
    int last;
};

/// A type and the places of its bytes, in order, as MPI packs them.
struct Type {
    const char* name;
    MPI_Datatype handle;
    std::vector<std::size_t> places;
    std::size_t extent;
};

void add(Type& type, std::size_t first, std::size_t count) {
    for (std::size_t at = 0; at < count; ++at) type.places.push_back(first + at);
}

Type vector_of_ints() {
    Type made{"vector", {}, {}, (9 * 5 + 3) * sizeof(int)};
    MPI_Type_vector(10, 3, 5, MPI_INT, &made.handle);
    for (std::size_t block = 0; block < 10; ++block)
        add(made, block * 5 * sizeof(int), 3 * sizeof(int));
    return made;
}

Type indexed() {
    const int lengths[] = {4, 1, 0, 7};
    const int at[] = {20, 0, 3, 30};  // not in the order of addresses
    Type made{"indexed", {}, {}, 37 * 2};
    MPI_Type_indexed(4, lengths, at, MPI_SHORT, &made.handle);
    for (const std::size_t which : {0U, 1U, 3U})
        add(made, static_cast<std::size_t>(at[which]) * 2,
            static_cast<std::size_t>(lengths[which]) * 2);
    return made;
}

Type structure() {
    const int lengths[] = {1, 1, 3, 1};
    const MPI_Aint at[] = {offsetof(Mixed, letter), offsetof(Mixed, number), offsetof(Mixed, small),
                           offsetof(Mixed, last)};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT};
    MPI_Datatype bare;
    Type made{"struct", {}, {}, sizeof(Mixed)};
    MPI_Type_create_struct(4, lengths, at, types, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(Mixed), &made.handle);
    MPI_Type_free(&bare);
    add(made, offsetof(Mixed, letter), 1);
    add(made, offsetof(Mixed, number), sizeof(double));
    add(made, offsetof(Mixed, small), 3 * sizeof(short));
    add(made, offsetof(Mixed, last), sizeof(int));
    return made;
}

/// A column of a matrix of 8 by 8 bytes, the next column one byte on.
Type column() {
    MPI_Datatype bare;
    Type made{"resized column", {}, {}, 1};
    MPI_Type_vector(8, 1, 8, MPI_BYTE, &bare);
    MPI_Type_create_resized(bare, 0, 1, &made.handle);
    MPI_Type_free(&bare);
    for (std::size_t row = 0; row < 8; ++row) add(made, row * 8, 1);
    return made;
}

Type subarray() {
    const int sizes[] = {12, 10}, parts[] = {5, 4}, first[] = {3, 2};
    Type made{"subarray", {}, {}, 120};
    MPI_Type_create_subarray(2, sizes, parts, first, MPI_ORDER_C, MPI_BYTE, &made.handle);
    for (std::size_t row = 0; row < 5; ++row) add(made, (3 + row) * 10 + 2, 4);
    return made;
}

Bytes packed(const Type& type, const Bytes& bytes, std::size_t count) {
    Bytes made;
    for (std::size_t one = 0; one < count; ++one)
        for (const std::size_t place : type.places)
            made.push_back(bytes[one * type.extent + place]);
    return made;
}

std::size_t room_for(const Type& type, std::size_t count) {
    const std::size_t last = *std::ranges::max_element(type.places) + 1;
    return count == 0 ? 0 : (count - 1) * type.extent + std::max(last, type.extent);
}

/// Scattered to the right, whole from the left, and the other way round.
void exchange(const Type& type, std::size_t count) {
    const std::size_t room = room_for(type, count);
    const auto seed = [&](int who) { return room * 16 + static_cast<unsigned>(who); };
    const Bytes ours = pattern(room, seed(rank));
    const Bytes wanted = packed(type, pattern(room, seed(left())), count);
    Bytes whole(wanted.size());
    MPI_Sendrecv(ours.data(), static_cast<int>(count), type.handle, right(), 1, whole.data(),
                 length(whole), MPI_BYTE, left(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    must(whole == wanted, type.name);

    const Bytes out = packed(type, ours, count);
    Bytes scattered(room, std::byte{0x33});
    MPI_Status status;
    MPI_Sendrecv(out.data(), length(out), MPI_BYTE, right(), 2, scattered.data(),
                 static_cast<int>(count), type.handle, left(), 2, MPI_COMM_WORLD, &status);
    must(packed(type, scattered, count) == wanted, type.name);
    int elements = -1;
    MPI_Get_count(&status, type.handle, &elements);
    same(static_cast<long long>(count), elements, "count of elements");
    std::vector<bool> touched(room);
    for (std::size_t one = 0; one < count; ++one)
        for (const std::size_t place : type.places) touched[one * type.extent + place] = true;
    for (std::size_t at = 0; at < room; ++at)
        must(touched[at] || scattered[at] == std::byte{0x33}, "a gap of a type was written");
}

void broadcast(const Type& type, std::size_t count) {
    const std::size_t room = room_for(type, count);
    Bytes bytes = pattern(room, rank == 0 ? 1 : 2);
    MPI_Bcast(bytes.data(), static_cast<int>(count), type.handle, 0, MPI_COMM_WORLD);
    must(packed(type, bytes, count) == packed(type, pattern(room, 1), count), type.name);
}

void pack(const Type& type, std::size_t count) {
    const Bytes ours = pattern(room_for(type, count), 5);
    int bound = 0, at = 0;
    MPI_Pack_size(static_cast<int>(count), type.handle, MPI_COMM_WORLD, &bound);
    Bytes room(static_cast<std::size_t>(bound));
    MPI_Pack(ours.data(), static_cast<int>(count), type.handle, room.data(), bound, &at,
             MPI_COMM_WORLD);
    Bytes theirs(static_cast<std::size_t>(at));
    MPI_Sendrecv(room.data(), at, MPI_PACKED, right(), 3, theirs.data(), at, MPI_PACKED, left(), 3,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    must(theirs == packed(type, ours, count), "packed");
}

}  // namespace

void types() {
    for (auto make : {vector_of_ints, indexed, structure, column, subarray}) {
        Type type = make();
        MPI_Type_commit(&type.handle);
        step(type.name);
        for (const std::size_t count : {1, 8, 500, 20000}) {
            exchange(type, count);
            broadcast(type, count);
            pack(type, count);
        }
        MPI_Type_free(&type.handle);
    }
}

}  // namespace mpi_test
